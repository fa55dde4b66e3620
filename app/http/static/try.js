// Shows the OpenAPI document. The URL is relative, so that the page also works below a path.
"use strict";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

const METHODS = ["get", "put", "post", "patch", "delete"];

function isHere(url) {
  return new URL(url, location.href).origin === location.origin;
}

// A browser lets this page call its own host only: elsewhere "Try it out" would fail, so it is not offered.
function canTry(spec) {
  const servers = [spec, ...Object.values(spec.paths)].flatMap((each) => each.servers || []);
  return servers.every((server) => isHere(server.url));
}

fetch("../openapi.json")
  .then((reply) => reply.json())
  .then((spec) => {
    window.SwaggerUIBundle({
      spec: { ...spec, info: { ...spec.info, description: "" } }, // The guides say it better.
      dom_id: "#operations",
      deepLinking: true,
      docExpansion: "list",
      defaultModelsExpandDepth: 0,
      validatorUrl: null, // No validator elsewhere is asked.
      supportedSubmitMethods: canTry(spec) ? METHODS : [],
    });
  });
