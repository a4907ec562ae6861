/**
 * Every view: its address, its code, who may use it (`needs`), and where the navigation has it: what everybody does stands
 * first, the rest under “Manage”, for those whom it `concerns`. A title is a key of the texts.
 */

import { isAdmin, isPlatformAdmin, readsAuditLog } from "./lib/session.js";
import SignIn from "./pages/sign-in/page.js";

/** Views that need no account. The first is the default without one, and is bundled with the client. */
export const OPEN_VIEWS = [
  { path: "/login", title: "Sign in", page: SignIn },
  { path: "/register", title: "Create an account", load: () => import("./pages/sign-in/register.js") },
  { path: "/forgot-password", title: "Forgot your password?", load: () => import("./pages/sign-in/forgot.js") },
  { path: "/reset-password", title: "Choose a new password", load: () => import("./pages/sign-in/reset.js") },
  { path: "/invites", title: "Invitation", load: () => import("./pages/sign-in/invite.js") },
];

const ask = () => import("./pages/ask/page.js");
const organization = () => import("./pages/people/organization.js");

export const VIEWS = [
  { path: "/", isFirst: true, title: "Ask", icon: "ask", load: ask, keys: "g a" },
  { path: "/ask/:conversation", title: "Ask", load: ask },
  { path: "/documents", isFirst: true, title: "Documents", icon: "documents", load: () => import("./pages/documents/page.js"), keys: "g d" },
  { path: "/documents/:base", title: "Documents", load: () => import("./pages/documents/base.js") },
  { path: "/documents/:base/sources", title: "Sources", load: () => import("./pages/sources/page.js") },
  { path: "/documents/:base/sources/:id", title: "Source", load: () => import("./pages/sources/source.js") },
  { path: "/documents/:base/contradictions", title: "Contradictions", load: () => import("./pages/documents/contradictions.js") },
  { path: "/documents/:base/:id", title: "Document", load: () => import("./pages/documents/document.js") },
  { path: "/pipelines", title: "Pipelines", icon: "pipelines", load: () => import("./pages/pipelines/page.js"), keys: "g p" },
  { path: "/chats", title: "Published chats", icon: "share", load: () => import("./pages/chats/page.js"), keys: "g c" },
  { path: "/chats/:id", title: "Published chat", load: () => import("./pages/chats/chat.js") },
  { path: "/graph", title: "Graph", icon: "graph", load: () => import("./pages/graph/page.js"), keys: "g r" },
  { path: "/evaluation", title: "Evaluation", icon: "evaluation", load: () => import("./pages/evaluation/page.js"), keys: "g v" },
  { path: "/evaluation/sets/:id", title: "Evaluation", load: () => import("./pages/evaluation/set.js") },
  { path: "/evaluation/runs/:id", title: "Evaluation", load: () => import("./pages/evaluation/run.js") },
  { path: "/tools", title: "Tools", icon: "tools", load: () => import("./pages/plugins/tools.js"), keys: "g t", concerns: isAdmin },
  { path: "/plugins", title: "Plugins", icon: "plugins", load: () => import("./pages/plugins/page.js"), keys: "g l", concerns: isAdmin },
  { path: "/plugins/marketplace", title: "Marketplace", load: () => import("./pages/plugins/marketplace.js") },
  { path: "/plugins/marketplace/:id", title: "Marketplace", load: () => import("./pages/plugins/listing.js") },
  { path: "/plugins/licenses", title: "Licenses", load: () => import("./pages/plugins/licenses.js") },
  { path: "/plugins/:name", title: "Plugin", load: () => import("./pages/plugins/plugin.js") },
  { path: "/people", isFirst: true, title: "People", icon: "people", load: () => import("./pages/people/teams.js"), keys: "g e" },
  { path: "/people/teams/:id", title: "Team", load: () => import("./pages/people/team.js") },
  { path: "/people/organizations", title: "Organizations", load: () => import("./pages/people/organizations.js") },
  { path: "/people/organizations/:id", title: "Organization", load: organization },
  { path: "/people/organizations/:id/:tab", title: "Organization", load: organization },
  { path: "/people/accounts", title: "Accounts", load: () => import("./pages/people/accounts.js"), needs: isPlatformAdmin },
  { path: "/keys", title: "Keys for programs", icon: "keys", load: () => import("./pages/account/keys.js"), keys: "g k" },
  { path: "/audit", title: "Audit log", icon: "audit", load: () => import("./pages/operations/audit.js"), needs: readsAuditLog, keys: "g u" },
  { path: "/operations", title: "Operations", icon: "operations", load: () => import("./pages/operations/page.js"), keys: "g o", concerns: isAdmin },
  { path: "/operations/models", title: "Models", load: () => import("./pages/operations/models.js") },
  { path: "/operations/bundles", title: "Bundles", load: () => import("./pages/operations/bundles.js") },
  { path: "/operations/logs", title: "Logs", load: () => import("./pages/operations/logs.js"), needs: isPlatformAdmin },
  { path: "/operations/settings", title: "Settings", load: () => import("./pages/operations/settings.js"), needs: isAdmin },
  { path: "/operations/backups", title: "Backups", load: () => import("./pages/operations/backups.js"), needs: isAdmin },
  { path: "/account", title: "Your account", load: () => import("./pages/account/page.js") },
];

/** Former addresses of views. */
export const MOVED = { "/plugins/licences": "/plugins/licenses" };

/** Whether this account may use a view. */
export const isAllowed = (view) => !view.needs || view.needs.value;

/** The views with an entry of their own that this account may use. */
export const navigation = () => VIEWS.filter((view) => view.icon && isAllowed(view));

/** Those of them under “Manage”. */
export const managed = () => navigation().filter((view) => !view.isFirst && (!view.concerns || view.concerns.value));
