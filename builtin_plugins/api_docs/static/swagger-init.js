"use strict";

// Swagger UI takes JSON Lines for JSON, and writes a text of several lines as one string in quotes.
const linesAsTheyAre = () => ({
  afterLoad() {
    const sample = this.fn.getSampleSchema;
    this.fn.getSampleSchema = (schema, type, config, example) =>
      type === "application/jsonl" && typeof example === "string"
        ? example
        : sample(schema, type, config, example);
  },
});

window.addEventListener("DOMContentLoaded", () => {
  const root = document.getElementById("swagger-ui");
  const ui = window.SwaggerUIBundle({
    url: root.dataset.openapiUrl,
    domNode: root,
    deepLinking: true,
    displayRequestDuration: true,
    docExpansion: "list",
    filter: true,
    presets: [window.SwaggerUIBundle.presets.apis],
    plugins: [linesAsTheyAre],
    queryConfigEnabled: false,
    validatorUrl: null,
    onComplete: () => window.platformSignIn(ui),
  });
});
