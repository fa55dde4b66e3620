// Lints OpenAPI documents as partners' tools do, and prints what is found in each.
import { readFileSync } from "node:fs";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import spectral from "@stoplight/spectral-core";
import rulesets from "@stoplight/spectral-rulesets";

const linter = new spectral.Spectral();
linter.setRuleset({ extends: [rulesets.oas] });
const config = await createConfig({ extends: ["recommended-strict"] });

const found = {};
for (const name of process.argv.slice(2)) {
  const source = readFileSync(name, "utf-8");
  const ofSpectral = await linter.run(JSON.parse(source));
  const ofRedocly = await lintFromString({ source, absoluteRef: name, config });
  found[name] = [
    ...ofSpectral.map(({ code, path, message }) => `spectral ${code} at ${path.join("/")}: ${message}`),
    ...ofRedocly.map(({ ruleId, message, location: [place] }) => `redocly ${ruleId} at ${place?.pointer}: ${message}`),
  ];
}
console.log(JSON.stringify(found));
