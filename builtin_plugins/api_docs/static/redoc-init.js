"use strict";

window.addEventListener("DOMContentLoaded", () => {
  const root = document.getElementById("redoc");
  const fonts = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
  const options = {
    theme: {
      typography: {
        fontFamily: fonts,
        headings: { fontFamily: fonts },
        code: { fontFamily: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace' },
      },
    },
  };
  window.Redoc.init(root.dataset.openapiUrl, options, root, (error) => {
    if (error) root.textContent = "The API document could not be shown: " + error.message;
  });
});
