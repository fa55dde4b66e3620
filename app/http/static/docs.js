// The URL is relative, so that the page also works below a path. No validator elsewhere is asked.
window.SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
