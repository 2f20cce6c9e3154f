/** The stable codes of {@link SandglassError}. */
export type ErrorCode =
  | 'invalid_request'
  | 'limits_do_not_fit'
  | 'limit_not_enforceable'
  | 'requirement_unmet'
  | 'engine_unknown'
  | 'engine_unavailable'
  | 'feature_unavailable'
  | 'bubblewrap_missing'
  | 'userns_forbidden'
  | 'sandbox_setup_failed'
  | 'docker_client_missing'
  | 'docker_unreachable'
  | 'docker_permission'
  | 'docker_tls'
  | 'kubernetes_client_missing'
  | 'kubernetes_config'
  | 'kubernetes_unreachable'
  | 'kubernetes_permission'
  | 'kubernetes_refused'
  | 'image_missing'
  | 'runtime_unknown'
  | 'pyodide_missing'
  | 'mcp_client_missing'
  | 'mcp_unreachable'
  | 'mount_refused'
  | 'python_missing'
  | 'python_unreachable'
  | 'packages_unreadable'
  | 'packages_do_not_fit'
  | 'dependency_invalid'
  | 'dependency_not_found'
  | 'dependency_no_wheel'
  | 'dependency_conflict'
  | 'dependency_too_new'
  | 'dependency_not_allowed'
  | 'index_unreachable'
  | 'index_refused'
  | 'installer_missing'
  | 'cache_dir_unusable'
  | 'architecture_unsupported'
  | 'platform_unsupported'
  | 'state_dir_unusable'
  | 'no_space'
  | 'no_uid_left'
  | 'harness_start_failed'
  | 'protocol_mismatch'
  | 'pool_exhausted'
  | 'pool_closed'
  | 'unknown_spec'
  | 'sandbox_busy'
  | 'journal_unusable'
  | 'store_unusable'
  | 'store_unreachable'
  | 'store_damaged'
  | 'artifact_not_found'
  | 'workspaces_unavailable'
  | 'activity_unavailable'
  | 'workspace_closed'
  | 'workspace_lost'
  | 'workspace_io'
  | 'workspace_owned'
  | 'workspace_not_found'
  | 'checkpoint_unavailable'
  | 'session_closed'
  | 'session_lost'
  | 'secrets_not_separate'
  | 'path_not_found'
  | 'path_refused'
  | 'too_large'
  | 'program_not_found'
  | 'program_not_running'
  | 'connection_refused'
  | 'websocket_client_missing'
  | 'websocket_unreachable'
  | 'websocket_failed'
  | 'langgraph_missing'
  | 'checkpointer_failed'
  | 'proposal_decided'
  | 'agent_busy'
  | 'approval_unknown'
  | 'approval_decided'
  | 'approval_invalid'
  | 'aborted'

/**
 * The meaning of each code, and whether the same call may succeed later. `docs/errors.md` is generated from this table.
 */
export const ERROR_CODES: Readonly<Record<ErrorCode, { readonly meaning: string; readonly retryable: boolean }>> = {
  invalid_request: {
    meaning: 'A request holds a value that cannot be run: the message names the field and what it must be.',
    retryable: false,
  },
  limits_do_not_fit: {
    meaning: 'The limits contradict each other, for example a disk limit that does not fit below the memory limit.',
    retryable: false,
  },
  limit_not_enforceable: {
    meaning: 'The engine cannot enforce a limit or policy that was asked for, so it refuses to run.',
    retryable: false,
  },
  requirement_unmet: {
    meaning:
      '`require` names a property that the engine does not have on this machine; the message lists what is missing.',
    retryable: false,
  },
  engine_unknown: { meaning: 'No engine of that name exists in this version.', retryable: false },
  engine_unavailable: {
    meaning: 'No engine passed its probes on this machine; the message gives each reason and its remedy.',
    retryable: false,
  },
  feature_unavailable: {
    meaning:
      'An option names a feature that this version, or the cluster, does not have; it is refused instead of ignored.',
    retryable: false,
  },
  bubblewrap_missing: { meaning: 'The program bwrap was not found or cannot be executed.', retryable: false },
  userns_forbidden: {
    meaning: 'The kernel or a security profile forbids the user namespaces that bubblewrap needs.',
    retryable: false,
  },
  sandbox_setup_failed: {
    meaning:
      'bubblewrap or Docker failed while it built the sandbox, or the host has too few descriptors, processes or memory for one; the message holds the error output.',
    retryable: true,
  },
  docker_client_missing: {
    meaning: 'The engine docker needs the npm package dockerode, which is not installed.',
    retryable: false,
  },
  docker_unreachable: {
    meaning: 'No Docker daemon answers at the address in use; the message names it.',
    retryable: true,
  },
  docker_tls: {
    meaning:
      'The connection to the Docker daemon failed at TLS: a certificate is missing or invalid, or the port does not serve TLS.',
    retryable: false,
  },
  docker_permission: { meaning: "This user may not use Docker's socket.", retryable: false },
  kubernetes_client_missing: {
    meaning: 'The engine kubernetes needs the npm packages @kubernetes/client-node and ws, which are not installed.',
    retryable: false,
  },
  kubernetes_config: {
    meaning: 'There is no kubeconfig, it cannot be read, or it lacks the context.',
    retryable: false,
  },
  kubernetes_unreachable: {
    meaning: 'The API server does not answer, or answers that it cannot serve the request now.',
    retryable: true,
  },
  kubernetes_permission: {
    meaning:
      'The API server refuses a request of this account: the message names the verb and the resource, or says that it does not accept the credentials.',
    retryable: false,
  },
  kubernetes_refused: {
    meaning:
      'The cluster refuses the pod, by quota or policy, or no node has room for it; the message holds its reason.',
    retryable: true,
  },
  image_missing: { meaning: 'The Docker daemon does not have the image, or no node can pull it.', retryable: false },
  runtime_unknown: {
    meaning: 'The Docker daemon knows no runtime of that name, or the cluster has no such RuntimeClass.',
    retryable: false,
  },
  pyodide_missing: {
    meaning: 'The engine pyodide needs the npm package pyodide, in the version that the message names.',
    retryable: false,
  },
  mcp_client_missing: {
    meaning: 'MCP servers need the npm package @modelcontextprotocol/client, which is not installed.',
    retryable: false,
  },
  mcp_unreachable: {
    meaning: 'An MCP server could not be started or does not answer; the message holds its last output.',
    retryable: true,
  },
  mount_refused: {
    meaning: 'A requested host path is not on the list of allowed ones, or is one that no list can allow.',
    retryable: false,
  },
  python_missing: { meaning: 'No Python of at least 3.10 was found.', retryable: false },
  python_unreachable: {
    meaning: 'A Python was found that the uid of the sandbox cannot reach or that does not start there.',
    retryable: false,
  },
  packages_unreadable: {
    meaning: 'The directory given as `packages` or `toolsDir` is missing or cannot be read.',
    retryable: false,
  },
  packages_do_not_fit: {
    meaning:
      'A package in the directory given as `packages` was built for another Python, operating system or CPU architecture than that of the sandboxes; the message has the command that installs the right one.',
    retryable: false,
  },
  dependency_invalid: {
    meaning:
      'A dependency is not written as `name[extras]version; marker` (options, paths and URLs are refused), or what the index delivered for it breaks the rules of wheels: another SHA-256, an archive bomb.',
    retryable: false,
  },
  dependency_not_found: { meaning: 'The package index has no package of that name.', retryable: false },
  dependency_no_wheel: {
    meaning:
      'The index has no wheel of a package for the Python and system of the sandboxes. Nothing is built from source; the message says how to bring a wheel.',
    retryable: false,
  },
  dependency_conflict: {
    meaning:
      'No versions meet all requirements, or none meets one of them; the message holds the reason that uv gives.',
    retryable: false,
  },
  dependency_too_new: {
    meaning: 'Every version that fits was uploaded after the limit `environments.excludeNewer`.',
    retryable: false,
  },
  dependency_not_allowed: {
    meaning:
      'A script or a model named a package, and `environments.fromScript` or `environments.allow` does not admit it. Nothing was downloaded.',
    retryable: false,
  },
  index_unreachable: {
    meaning: 'The package index does not answer, or not in time; the message names its address without credentials.',
    retryable: true,
  },
  index_refused: { meaning: 'The package index refuses the user name, the password or the token.', retryable: false },
  installer_missing: {
    meaning: 'The program uv was not found and cannot be downloaded for this platform.',
    retryable: false,
  },
  cache_dir_unusable: {
    meaning:
      'The directory of the package cache cannot be created, written or locked; the message names it and the cause.',
    retryable: false,
  },
  architecture_unsupported: {
    meaning:
      'The system call filter exists for x86_64 and aarch64 only, or an image was built for another CPU architecture.',
    retryable: false,
  },
  platform_unsupported: { meaning: 'The engine does not run on this operating system.', retryable: false },
  state_dir_unusable: {
    meaning: 'The state directory cannot be created, written or locked; the message names the path and the cause.',
    retryable: false,
  },
  no_space: {
    meaning:
      'The file system that holds the state directory, the package cache, a store or the data of Docker is full.',
    retryable: true,
  },
  no_uid_left: { meaning: 'All uids of the range for sandboxes are in use.', retryable: true },
  harness_start_failed: {
    meaning: 'The harness did not report ready in time, or ended first; the message holds its last output.',
    retryable: true,
  },
  protocol_mismatch: {
    meaning: 'The harness speaks another protocol version than this host.',
    retryable: false,
  },
  pool_exhausted: {
    meaning: 'No sandbox became free before `checkoutTimeoutMs`; the message gives the sizes.',
    retryable: true,
  },
  pool_closed: { meaning: 'The pool (or the Sandglass that owns it) is closed.', retryable: false },
  unknown_spec: { meaning: 'The pool has no sandbox spec of that name.', retryable: false },
  sandbox_busy: {
    meaning:
      'The sandbox is already running a script, or cannot take another activity of its workspace now; the message says why.',
    retryable: true,
  },
  journal_unusable: {
    meaning: 'The store of the journal cannot be opened, read or written; the message names it and the cause.',
    retryable: false,
  },
  store_unusable: {
    meaning: 'A store of artifacts cannot be opened, read or written; the message names it and the cause.',
    retryable: false,
  },
  store_unreachable: {
    meaning: 'The server of a store does not answer, or only with errors of its own; the message names it.',
    retryable: true,
  },
  store_damaged: {
    meaning:
      'A store lost data, or returned other content than was stored; the message says what to save again or to remove.',
    retryable: false,
  },
  artifact_not_found: {
    meaning: 'The session has no artifact of that name, or no such version of it.',
    retryable: false,
  },
  workspaces_unavailable: {
    meaning: 'The engine has no workspaces; the message names those that have them.',
    retryable: false,
  },
  activity_unavailable: {
    meaning:
      'The workspace has no programs, or, because its activities run one at a time, no started programs, terminals and connections; the message names engines that have them.',
    retryable: false,
  },
  workspace_closed: {
    meaning: 'The workspace was closed: by its owner, with its Sandglass, or after its `idleTimeoutSec`.',
    retryable: false,
  },
  workspace_lost: {
    meaning:
      'The sandbox of a workspace ended by itself or broke the protocol; its files are gone, but for those in the store of a persisted one, whose time the message holds.',
    retryable: true,
  },
  workspace_io: {
    meaning: 'The file system of a workspace failed; the message holds the error of the system call.',
    retryable: true,
  },
  workspace_owned: {
    meaning:
      'A persisted workspace has another owner, or another one took over from this one, which did not renew its lease for 30 s. `waitSec` waits for its end.',
    retryable: true,
  },
  workspace_not_found: { meaning: 'A store has no workspace of this id.', retryable: false },
  checkpoint_unavailable: {
    meaning:
      'The sessions of the engine have no checkpoints, no copy of the state could be made, or the checkpoint no longer exists. The message gives the reason.',
    retryable: false,
  },
  session_closed: { meaning: 'The session, or its workspace, was closed; open another one.', retryable: false },
  session_lost: {
    meaning:
      'The state of the session is gone: its process ended and there was no checkpoint to go back to. The message says why; open another session.',
    retryable: false,
  },
  secrets_not_separate: {
    meaning:
      'A script or program with secrets and another activity would live in one workspace where the machine cannot keep their memory apart. `shareSecrets: true` allows it.',
    retryable: true,
  },
  path_not_found: { meaning: 'A path of a workspace does not exist.', retryable: false },
  path_refused: {
    meaning:
      'A path of a workspace, or a path on the host to save to, has the wrong file type, already exists, or leads outside; the message says which.',
    retryable: false,
  },
  too_large: {
    meaning: 'Files of a workspace exceed a limit on their size or number; the message names the limit.',
    retryable: false,
  },
  program_not_found: { meaning: 'A program does not exist in the sandbox or cannot be executed.', retryable: false },
  program_not_running: {
    meaning: 'A program of a workspace has ended: it takes no input and no signal.',
    retryable: false,
  },
  connection_refused: { meaning: 'Nothing listens at a port of a workspace.', retryable: true },
  websocket_client_missing: {
    meaning: '`toolTransport: "websocket"` needs the npm package ws, which is not installed.',
    retryable: false,
  },
  websocket_unreachable: {
    meaning:
      'With `toolTransport: "websocket"`, the host must reach a port of the sandbox: at its network address, or, in a workspace that runs several activities at once, at its loopback. The message says what is missing.',
    retryable: false,
  },
  websocket_failed: {
    meaning: 'The host could not connect to the WebSocket endpoint of a script. No part of the script ran.',
    retryable: true,
  },
  langgraph_missing: {
    meaning:
      '`createCodeAgent` needs the npm packages @langchain/langgraph and @langchain/core, and `sandglass agent` also @langchain/langgraph-checkpoint-sqlite; one of them is not installed.',
    retryable: false,
  },
  checkpointer_failed: {
    meaning:
      'The checkpointer of a code agent failed, or cannot keep the first of two writes. No script begins without its record; `resume()` continues when it works again.',
    retryable: true,
  },
  proposal_decided: {
    meaning:
      'Somebody else has already decided about the script, and the message says who and how; or the proposal does not wait for a decision.',
    retryable: false,
  },
  agent_busy: {
    meaning: 'This thread of a code agent continues elsewhere, or its script may still run in another process.',
    retryable: true,
  },
  approval_unknown: {
    meaning: 'No call of this Sandglass waits, or waited lately, under the id that `approve` or `deny` was given.',
    retryable: false,
  },
  approval_decided: {
    meaning: 'The call has been decided already, or its run is over; the message says how, and by whom.',
    retryable: false,
  },
  approval_invalid: {
    meaning: 'The tool does not accept the arguments that `approve` was given; the call waits on.',
    retryable: false,
  },
  aborted: {
    meaning: 'The AbortSignal was aborted before a sandbox was ready, or before an operation of a workspace was over.',
    retryable: false,
  },
}
