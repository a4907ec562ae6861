"use strict";

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
    queryConfigEnabled: false,
    validatorUrl: null,
    onComplete: () => window.platformSignIn(ui),
  });
});
