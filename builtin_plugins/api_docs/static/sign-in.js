"use strict";

// Signs in with name and password on the page of Swagger UI, and keeps the token fresh while the page is open.
// The token lives in this page's memory alone.
window.platformSignIn = (ui) => {
  const form = document.getElementById("sign-in");
  const said = form.querySelector("output");
  const early = 60;
  let timer;

  async function call(path, options) {
    const answer = await fetch(`.${path}`, { method: "POST", ...options });
    const body = await answer.json();
    if (!answer.ok) {
      throw new Error(typeof body.detail === "string" ? body.detail : "Name or password is not valid");
    }
    return body;
  }

  function use(result) {
    ui.preauthorizeApiKey("bearer", result.access_token);
    const seconds = Math.max(result.expires_in - early, 1);
    timer = setTimeout(() => refresh(result.access_token), seconds * 1000);
  }

  async function refresh(token) {
    try {
      use(await call("/v1/auth/refresh", { headers: { Authorization: `Bearer ${token}` } }));
    } catch (error) {
      said.textContent = `Signed out: ${error.message}`;
    }
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(timer);
    try {
      const result = await call("/v1/auth/login", {
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(Object.fromEntries(new FormData(form))),
      });
      form.reset();
      use(result);
      said.textContent = `Signed in as ${result.user.username}`;
    } catch (error) {
      said.textContent = error.message;
    }
  });

  // A service on its own port has no sign-in.
  const paths = ui.specSelectors.specJson().get("paths");
  form.hidden = !(paths && paths.has("/v1/auth/login"));
};
