// A certified OpenID provider on loopback, driven by the tests: who signs in is a cookie, what is said of
// them is set over `/_test/...`. Its configuration is in PROVIDER_CONFIG; prints its port; ends with its
// standard input, and so with the tests.

import { text } from "node:stream/consumers";
import Provider from "oidc-provider";

const { issuer, client, jwks } = JSON.parse(process.env.PROVIDER_CONFIG);
const people = new Map();
let deliveries = null; // where the platform listens, for what the provider sends it

const provider = new Provider(issuer, {
  clients: [client],
  jwks,
  cookies: { keys: ["for tests only"] },
  claims: {
    openid: ["sub"],
    profile: ["preferred_username", "name"],
    email: ["email", "email_verified"],
    groups: ["groups"],
  },
  features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id, ...people.get(id) }) }),
  async loadExistingGrant(ctx) {
    const { oidc } = ctx;
    const { clientId } = oidc.client;
    const { accountId } = oidc.session;
    const known = oidc.session.grantIdFor(clientId); // another would end the codes of sign-ins under way
    const grant = (known && (await oidc.provider.Grant.find(known))) || new oidc.provider.Grant({ clientId, accountId });
    grant.addOIDCScope(oidc.params.scope);
    await grant.save();
    return grant;
  },
  // The provider's guard against requests to loopback would keep it from a platform under test.
  fetch: (url, { dispatcher, ...options }) => fetch(new URL(new URL(url).pathname, deliveries), options),
});
provider.proxy = true;

provider.use(async (ctx, next) => {
  const [, place, name] = ctx.path.split("/");
  if (place === "_test" && name === "deliveries") {
    deliveries = await text(ctx.req);
    ctx.status = 204;
  } else if (place === "_test") {
    people.set(decodeURIComponent(name), JSON.parse(await text(ctx.req)));
    ctx.status = 204;
  } else if (place === "interaction") {
    const accountId = ctx.cookies.get("person", { signed: false });
    const refusal = { error: "access_denied", error_description: "Call +1 555 0100 to unlock your account" };
    await provider.interactionFinished(ctx.req, ctx.res, accountId ? { login: { accountId } } : refusal);
    ctx.respond = false;
  } else {
    await next();
  }
});

const server = provider.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit());
