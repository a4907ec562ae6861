/**
 * Every call that the client makes, by name. A test compares this list with the API's document.
 *
 * A call takes one object: the values of its path's parameters, and `query`, `body`, `signal` and the options
 * of `send`. It returns the JSON of the response; `raw` calls return the `Response`.
 */

import { call } from "./http.js";

const OPEN = { anonymous: true };
const RAW = { raw: true };

export const api = {
  // This server
  capabilities: call("GET", "/v1/auth/capabilities", OPEN),
  status: call("GET", "/v1/status"),

  // Accounts
  signIn: call("POST", "/v1/auth/login", OPEN),
  makeFirstAccount: call("POST", "/v1/auth/first-account", OPEN),
  register: call("POST", "/v1/auth/register", OPEN),
  signOutEverywhere: call("POST", "/v1/auth/logout"),
  signOutAtProvider: call("POST", "/v1/auth/oidc/logout"),
  changePassword: call("POST", "/v1/auth/change-password"),
  askForPasswordReset: call("POST", "/v1/auth/password-reset/request", OPEN),
  confirmPasswordReset: call("POST", "/v1/auth/password-reset/confirm", OPEN),
  setupCodeWanted: call("GET", "/v1/auth/platform-admin/claim"),
  claimWithSetupCode: call("POST", "/v1/auth/platform-admin/claim"),
  users: call("GET", "/v1/auth/users"),
  setUserRole: call("PATCH", "/v1/auth/users/{user_id}/role"),
  setUserStatus: call("PATCH", "/v1/auth/users/{user_id}/status"),
  deleteUser: call("DELETE", "/v1/auth/users/{user_id}"),
  deleteOwnAccount: call("DELETE", "/v1/auth/me"),
  resetUserPassword: call("POST", "/v1/auth/users/{user_id}/reset-password"),

  // Keys for programs
  keys: call("GET", "/v1/auth/tokens"),
  createKey: call("POST", "/v1/auth/tokens"),
  revokeKey: call("DELETE", "/v1/auth/tokens/{token_id}"),

  // Knowledge bases and documents
  knowledgeBases: call("GET", "/v1/rag/knowledge-bases"),
  knowledgeBase: call("GET", "/v1/rag/knowledge-bases/{kb_id}"),
  createKnowledgeBase: call("POST", "/v1/rag/knowledge-bases"),
  changeKnowledgeBase: call("PATCH", "/v1/rag/knowledge-bases/{kb_id}"),
  lookAs: call("GET", "/v1/rag/knowledge-bases/{kb_id}/sight"),
  reembed: call("POST", "/v1/rag/knowledge-bases/{kb_id}/reembed"),
  buildTrees: call("POST", "/v1/rag/knowledge-bases/{kb_id}/trees"),
  contradictions: call("GET", "/v1/rag/knowledge-bases/{kb_id}/contradictions"),
  findContradictions: call("POST", "/v1/rag/knowledge-bases/{kb_id}/contradictions"),
  exportKnowledgeBase: call("GET", "/v1/rag/knowledge-bases/{kb_id}/export", RAW),
  importKnowledgeBase: call("POST", "/v1/rag/knowledge-bases/import"),
  deleteKnowledgeBase: call("DELETE", "/v1/rag/knowledge-bases/{kb_id}"),
  documents: call("GET", "/v1/rag/knowledge-bases/{kb_id}/documents"),
  documentsNamed: call("GET", "/v1/rag/documents"),
  questionFigures: call("GET", "/v1/rag/figures"),
  topics: call("GET", "/v1/rag/knowledge-bases/{kb_id}/topics"),
  document: call("GET", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}"),
  deleteDocument: call("DELETE", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}"),
  trashedBases: call("GET", "/v1/rag/knowledge-bases/trash"),
  discardBase: call("POST", "/v1/rag/knowledge-bases/trash"),
  takeBaseBack: call("POST", "/v1/rag/knowledge-bases/trash/{kb_id}/restore"),
  deleteTrashedBase: call("DELETE", "/v1/rag/knowledge-bases/trash/{kb_id}"),
  trash: call("GET", "/v1/rag/knowledge-bases/{kb_id}/trash"),
  takeBack: call("POST", "/v1/rag/knowledge-bases/{kb_id}/trash/{document_id}/restore"),
  deleteTrashed: call("DELETE", "/v1/rag/knowledge-bases/{kb_id}/trash/{document_id}"),
  versions: call("GET", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/versions"),
  difference: call("GET", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/difference"),
  restoreVersion: call("POST", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/restore"),
  facets: call("POST", "/v1/rag/knowledge-bases/{kb_id}/facets"),
  pipelineFacets: call("POST", "/v1/rag/pipeline/{pipeline_id}/facets"),
  fields: call("GET", "/v1/rag/knowledge-bases/{kb_id}/fields"),
  putField: call("PUT", "/v1/rag/knowledge-bases/{kb_id}/fields/{name}"),
  deleteField: call("DELETE", "/v1/rag/knowledge-bases/{kb_id}/fields/{name}"),
  metadataRules: call("GET", "/v1/rag/knowledge-bases/{kb_id}/metadata-rules"),
  putMetadataRules: call("PUT", "/v1/rag/knowledge-bases/{kb_id}/metadata-rules"),
  metadataTable: call("GET", "/v1/rag/knowledge-bases/{kb_id}/metadata.csv", RAW),
  putMetadataTable: call("PUT", "/v1/rag/knowledge-bases/{kb_id}/metadata.csv"),
  documentMetadata: call("GET", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/metadata"),
  changeDocumentMetadata: call("PATCH", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/metadata"),
  readFailedAgain: call("POST", "/v1/rag/knowledge-bases/{kb_id}/ingestion/retry"),
  passages: call("GET", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/chunks"),
  content: call("GET", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/content", RAW),
  preview: call("GET", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/preview", RAW),
  // The same bytes are one document, however often they are sent: 202 if it is new, 200 if it exists.
  upload: call("POST", "/v1/rag/knowledge-bases/{kb_id}/upload", { ...RAW, repeatable: true }),

  // Pipelines and questions
  methods: call("GET", "/v1/rag/capabilities"),
  documentReaders: call("GET", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/readers"),
  origin: call("GET", "/v1/rag/knowledge-bases/{kb_id}/documents/{document_id}/origin"),
  sourceKinds: call("GET", "/v1/rag/source-kinds"),
  sources: call("GET", "/v1/rag/knowledge-bases/{kb_id}/sources"),
  addSource: call("POST", "/v1/rag/knowledge-bases/{kb_id}/sources"),
  trySource: call("POST", "/v1/rag/knowledge-bases/{kb_id}/sources/test"),
  source: call("GET", "/v1/rag/sources/{source_id}"),
  changeSource: call("PATCH", "/v1/rag/sources/{source_id}"),
  removeSource: call("DELETE", "/v1/rag/sources/{source_id}"),
  runSource: call("POST", "/v1/rag/sources/{source_id}/run"),
  confirmSource: call("POST", "/v1/rag/sources/{source_id}/confirm"),
  sourceRuns: call("GET", "/v1/rag/sources/{source_id}/runs"),
  sourceRights: call("GET", "/v1/rag/sources/{source_id}/rights"),
  sourcePrincipals: call("GET", "/v1/rag/sources/{source_id}/principals"),
  counterparts: call("GET", "/v1/rag/sources/{source_id}/counterparts"),
  replaceCounterparts: call("PUT", "/v1/rag/sources/{source_id}/counterparts"),
  sourceItems: call("GET", "/v1/rag/sources/{source_id}/items"),
  makePushAddress: call("POST", "/v1/rag/sources/{source_id}/push-address"),
  usage: call("GET", "/v1/rag/usage"),
  pipelines: call("GET", "/v1/rag/pipeline"),
  createPipeline: call("POST", "/v1/rag/pipeline"),
  changePipeline: call("PATCH", "/v1/rag/pipeline/{pipeline_id}"),
  deletePipeline: call("DELETE", "/v1/rag/pipeline/{pipeline_id}"),
  ask: call("POST", "/v1/rag/pipeline/{pipeline_id}/query", { ...RAW, headers: { Accept: "text/event-stream" } }),

  // Conversations
  conversations: call("GET", "/v1/conversations/mine"),
  sharedConversations: call("GET", "/v1/conversations/shared-with-me"),
  exportConversations: call("GET", "/v1/conversations/mine/export", RAW),
  deleteConversations: call("DELETE", "/v1/conversations/mine"),
  conversation: call("GET", "/v1/conversations/{conversation_id}"),
  turns: call("GET", "/v1/conversations/{conversation_id}/turns"),
  rateAnswer: call("PUT", "/v1/conversations/{conversation_id}/turns/{turn_id}/rating"),
  renameConversation: call("PATCH", "/v1/conversations/{conversation_id}"),
  deleteConversation: call("DELETE", "/v1/conversations/{conversation_id}"),
  exportConversation: call("GET", "/v1/conversations/{conversation_id}/export"),
  shareConversation: call("POST", "/v1/rag/pipeline/{pipeline_id}/conversations/{conversation_id}/share"),
  unshareConversation: call("DELETE", "/v1/rag/pipeline/{pipeline_id}/conversations/{conversation_id}/share"),

  // Published chats
  chats: call("GET", "/v1/rag/endpoints"),
  createChat: call("POST", "/v1/rag/endpoints"),
  changeChat: call("PATCH", "/v1/rag/endpoints/{endpoint_id}"),
  deleteChat: call("DELETE", "/v1/rag/endpoints/{endpoint_id}"),
  publishingChats: call("GET", "/v1/rag/knowledge-bases/{kb_id}/chats"),
  endPublishingChat: call("DELETE", "/v1/rag/knowledge-bases/{kb_id}/chats/{endpoint_id}"),
  chatFigures: call("GET", "/v1/rag/endpoints/{endpoint_id}/figures"),

  chatSessions: call("GET", "/v1/rag/endpoints/{endpoint_id}/sessions"),
  chatSessionTurns: call("GET", "/v1/rag/endpoints/{endpoint_id}/sessions/{session_id}/turns"),
  deleteChatSession: call("DELETE", "/v1/rag/endpoints/{endpoint_id}/sessions/{session_id}"),
  chatFeedback: call("GET", "/v1/rag/endpoints/{endpoint_id}/feedback"),

  // Evaluation
  evaluationSets: call("GET", "/v1/rag/evaluation/sets"),
  evaluationSet: call("GET", "/v1/rag/evaluation/sets/{set_id}"),
  createEvaluationSet: call("POST", "/v1/rag/evaluation/sets"),
  deleteEvaluationSet: call("DELETE", "/v1/rag/evaluation/sets/{set_id}"),
  uploadQuestions: call("POST", "/v1/rag/evaluation/sets/{set_id}/upload"),
  generateQuestions: call("POST", "/v1/rag/evaluation/sets/{set_id}/generate"),
  candidates: call("GET", "/v1/rag/evaluation/sets/{set_id}/candidates"),
  takeCandidates: call("POST", "/v1/rag/evaluation/sets/{set_id}/candidates"),
  evaluationQuestions: call("GET", "/v1/rag/evaluation/sets/{set_id}/questions"),
  deleteEvaluationQuestion: call("DELETE", "/v1/rag/evaluation/sets/{set_id}/questions/{question_id}"),
  evaluationRuns: call("GET", "/v1/rag/evaluation/runs"),
  evaluationRun: call("GET", "/v1/rag/evaluation/runs/{run_id}"),
  startEvaluation: call("POST", "/v1/rag/evaluation/runs"),
  evaluationResults: call("GET", "/v1/rag/evaluation/runs/{run_id}/results"),
  compareRuns: call("GET", "/v1/rag/evaluation/runs/{run_id}/comparison"),
  evaluationTable: call("GET", "/v1/rag/evaluation/runs/{run_id}/table.md", RAW),
  evaluationPlot: call("GET", "/v1/rag/evaluation/runs/{run_id}/plot.svg", RAW),

  // Graphs
  graphNetwork: call("GET", "/v1/graph-rag/graph/network"),
  entityContext: call("POST", "/v1/graph-rag/entity-context", { repeatable: true }),
  graphOverview: call("POST", "/v1/graph-rag/overview", { repeatable: true }),
  correlations: call("GET", "/v1/graph-rag/graph/correlations"),

  // Speech
  spokenLanguages: call("GET", "/v1/tts/languages"),
  heardLanguages: call("GET", "/v1/stt/languages"),
  speak: call("POST", "/v1/tts", { ...RAW, headers: { Accept: "audio/mpeg" } }),
  hear: call("POST", "/v1/stt", { repeatable: true }),

  // Models
  models: call("GET", "/v1/models"),
  pullModel: call("POST", "/v1/models"),
  pulls: call("GET", "/v1/models/pulls"),
  cancelPull: call("DELETE", "/v1/models/pulls/{pull_id}"),
  deleteModel: call("DELETE", "/v1/models/{model_id}"),
  testModel: call("POST", "/v1/models/{model_id}/test"),
  modelUse: call("GET", "/v1/models/{model_id}/metrics"),
  modelLimits: call("GET", "/v1/models/{model_id}/constraints"),
  limitModel: call("POST", "/v1/models/{model_id}/constraints"),
  modelChoices: call("GET", "/v1/models/choices"),
  defaultModels: call("GET", "/v1/models/defaults"),
  setDefaultModels: call("PUT", "/v1/models/defaults"),
  modelConnections: call("GET", "/v1/models/connections"),
  modelServersNearby: call("GET", "/v1/models/connections/nearby"),
  testModelServer: call("POST", "/v1/models/connections/test", { repeatable: true }),
  connectModels: call("PUT", "/v1/models/connections/{name}", { repeatable: true }),
  testModelConnection: call("POST", "/v1/models/connections/{name}/test", { repeatable: true }),
  disconnectModels: call("DELETE", "/v1/models/connections/{name}"),

  // Operations
  bundles: call("GET", "/v1/bundles"),
  bundlesNow: call("GET", "/v1/bundles/ready"),
  enableBundle: call("POST", "/v1/bundles/{name}/enable"),
  disableBundle: call("POST", "/v1/bundles/{name}/disable"),
  logs: call("GET", "/v1/containers/{name}/logs"),
  followLogs: call("GET", "/v1/containers/{name}/logs", { ...RAW, headers: { Accept: "text/event-stream" } }),
  settings: call("GET", "/v1/settings"),
  backups: call("GET", "/v1/backups"),
  makeBackup: call("POST", "/v1/backups"),
  backupJobs: call("GET", "/v1/backups/jobs"),
  rehearseRestore: call("POST", "/v1/backups/{name}/drill"),
  restoreBackup: call("POST", "/v1/backups/{name}/restore"),

  // Jobs
  jobs: call("GET", "/v1/jobs"),
  job: call("GET", "/v1/jobs/{job_id}"),
  cancelJob: call("POST", "/v1/jobs/{job_id}/cancel"),

  // Plugins, marketplace, tools, licenses
  plugins: call("GET", "/v1/plugins"),
  plugin: call("GET", "/v1/plugins/{name}"),
  enablePlugin: call("POST", "/v1/plugins/{name}/enable"),
  disablePlugin: call("POST", "/v1/plugins/{name}/disable"),
  pluginSettings: call("GET", "/v1/plugins/{name}/config"),
  changePluginSettings: call("PUT", "/v1/plugins/{name}/config"),
  listings: call("GET", "/v1/marketplace/plugins"),
  searchListings: call("GET", "/v1/marketplace/plugins/search"),
  listing: call("GET", "/v1/marketplace/plugins/{plugin_id}"),
  createListing: call("POST", "/v1/marketplace/plugins"),
  installListing: call("POST", "/v1/marketplace/plugins/{plugin_id}/install"),
  uninstallListing: call("DELETE", "/v1/marketplace/plugins/{plugin_id}/uninstall"),
  enableListing: call("POST", "/v1/marketplace/plugins/{plugin_id}/enable"),
  disableListing: call("POST", "/v1/marketplace/plugins/{plugin_id}/disable"),
  ratings: call("GET", "/v1/marketplace/plugins/{plugin_id}/ratings"),
  rate: call("POST", "/v1/marketplace/plugins/{plugin_id}/ratings"),
  installations: call("GET", "/v1/marketplace/installations/me"),
  mySubmissions: call("GET", "/v1/marketplace/submissions/mine"),
  submitListing: call("POST", "/v1/marketplace/submissions/{plugin_id}/submit"),
  submissions: call("GET", "/v1/marketplace/submissions"),
  claimSubmission: call("POST", "/v1/marketplace/submissions/{plugin_id}/claim"),
  approveSubmission: call("POST", "/v1/marketplace/submissions/{plugin_id}/approve"),
  rejectSubmission: call("POST", "/v1/marketplace/submissions/{plugin_id}/reject"),
  licenses: call("GET", "/v1/marketplace/licenses"),
  tools: call("GET", "/v1/ai/functions/definitions"),
  runTool: call("POST", "/v1/ai/functions/{name}"),

  // Teams and organizations
  teams: call("GET", "/v1/teams"),
  team: call("GET", "/v1/teams/{team_id}"),
  createTeam: call("POST", "/v1/teams"),
  deleteTeam: call("DELETE", "/v1/teams/{team_id}"),
  changeTeamMember: call("PATCH", "/v1/teams/{team_id}/members/{user_id}"),
  removeTeamMember: call("DELETE", "/v1/teams/{team_id}/members/{user_id}"),
  importTeam: call("POST", "/v1/teams/{team_id}/import"),
  exportTeam: call("GET", "/v1/teams/{team_id}/export"),
  teamInvites: call("GET", "/v1/invites"),
  inviteToTeam: call("POST", "/v1/invites"),
  revokeTeamInvite: call("POST", "/v1/invites/{invite_id}/revoke"),
  invite: call("GET", "/v1/invites/by-token/{token}"),
  acceptInvite: call("POST", "/v1/invites/by-token/{token}/redeem"),
  myOrganizations: call("GET", "/v1/organizations/mine"),
  organizations: call("GET", "/v1/organizations"),
  organization: call("GET", "/v1/organizations/{org_id}"),
  createOrganization: call("POST", "/v1/organizations"),
  subOrganizations: call("GET", "/v1/organizations/{org_id}/organizations"),
  members: call("GET", "/v1/organizations/{org_id}/members"),
  setMember: call("POST", "/v1/organizations/{org_id}/members"),
  removeMember: call("DELETE", "/v1/organizations/{org_id}/members/{user_id}"),
  suspendMember: call("PUT", "/v1/organizations/{org_id}/members/{user_id}/suspension"),
  restoreMember: call("DELETE", "/v1/organizations/{org_id}/members/{user_id}/suspension"),
  organizationInvites: call("GET", "/v1/organizations/{org_id}/invites"),
  inviteToOrganization: call("POST", "/v1/organizations/{org_id}/invites"),
  revokeOrganizationInvite: call("POST", "/v1/organizations/{org_id}/invites/{invite_id}/revoke"),
  importOrganization: call("POST", "/v1/organizations/{org_id}/import"),
  exportOrganization: call("GET", "/v1/organizations/{org_id}/export"),
  permissions: call("GET", "/v1/permissions"),
  roles: call("GET", "/v1/organizations/{org_id}/roles"),
  createRole: call("POST", "/v1/organizations/{org_id}/roles"),
  changeRole: call("PATCH", "/v1/organizations/{org_id}/roles/{role_id}"),
  deleteRole: call("DELETE", "/v1/organizations/{org_id}/roles/{role_id}"),
  permissionGroups: call("GET", "/v1/organizations/{org_id}/permission-groups"),
  createPermissionGroup: call("POST", "/v1/organizations/{org_id}/permission-groups"),
  changePermissionGroup: call("PATCH", "/v1/organizations/{org_id}/permission-groups/{group_id}"),
  addChildGroup: call("POST", "/v1/organizations/{org_id}/permission-groups/{group_id}/children"),
  removeChildGroup: call("DELETE", "/v1/organizations/{org_id}/permission-groups/{group_id}/children/{child_group_id}"),
  deletePermissionGroup: call("DELETE", "/v1/organizations/{org_id}/permission-groups/{group_id}"),
  memberRoles: call("GET", "/v1/organizations/{org_id}/members/{user_id}/roles"),
  assignRole: call("POST", "/v1/organizations/{org_id}/members/{user_id}/roles"),
  unassignRole: call("DELETE", "/v1/organizations/{org_id}/members/{user_id}/roles/{role_id}"),
  effectivePermissions: call("GET", "/v1/organizations/{org_id}/members/{user_id}/effective-permissions"),
  audit: call("GET", "/v1/audit"),
};

/** The pages of a list, one after the other from `query.offset` on, each loaded on demand. */
export async function* pagesOf(fetchPage, parameters = {}, most = 20_000) {
  for (let offset = parameters.query?.offset ?? 0, total = offset + 1; offset < total; ) {
    const page = await fetchPage({ ...parameters, query: { ...parameters.query, limit: 500, offset } });
    yield page;
    offset += page.items.length;
    total = page.items.length ? Math.min(page.total, most) : 0;
  }
}

/** All items of a paged list. */
export async function everything(fetchPage, parameters = {}, most = 20_000) {
  const items = [];
  for await (const page of pagesOf(fetchPage, parameters, most)) items.push(...page.items);
  return items;
}
