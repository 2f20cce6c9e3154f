import type { Findings } from '../review/index.ts'
import type { ToolsInput } from '../tools/index.ts'

/** The connection from a script to the tools of the host. */
export interface ToolBridge {
  /** `stdio`: the channel of the sandbox, without a port. `websocket`: a connection to an endpoint in the sandbox. */
  readonly transport: 'stdio' | 'websocket'
  /** The Python names of the tools. */
  readonly tools: readonly string[]
}

/** Options of {@link CodeToolExecutor.execute}. */
export interface ExecuteOptions {
  /** Ends the script and everything that it started. */
  readonly signal?: AbortSignal
}

/** The findings about a script, or its mistakes for the model. No part of it has run. */
export type Inspected = Findings | { readonly problem: string }

/** Executes the Python of a code agent. */
export interface CodeToolExecutor extends AsyncDisposable {
  /** Packages that every script can import, as `pip` names them. */
  readonly availableDependencies: readonly string[]
  /** The directory in which scripts start, as they see it. */
  workspaceFullPath(): string
  /**
   * Checks a script (policy `standard`, except for missing modules) and returns its findings. Installs nothing: `dependencies` are
   * those that are installed for every script, pinned, those of earlier scripts, the unchanged `libraries`, and those that the script
   * declares (`# /// script`).
   * @throws SandglassError when a sandbox or its packages fail; TypeError for tools that cannot become functions.
   */
  inspect(tools: ToolsInput, code: string, libraries: readonly string[], options?: ExecuteOptions): Promise<Inspected>
  /**
   * Runs a script. Resolves with its output, and with its result in JSON if it gave one. A failure is a text for the model that begins
   * with `Error:` and has the traceback, or the name of the crash or limit. If packages cannot be installed, the text has the
   * installer's reasons, the script does not run, and the other packages are installed.
   * @param libraries packages that the script imports, as `pip` names them. They stay for later scripts.
   * @param toolInitCallback called with the tools when the script is about to run. Until then, no part of it has run. An executor
   * that rejects after a script began must have called it: otherwise a code agent runs the script again.
   * @throws SandglassError when a sandbox or its packages fail, `pool_closed` after the executor was disposed of; TypeError for tools that cannot become functions.
   */
  execute(
    tools: ToolsInput,
    code: string,
    libraries: readonly string[],
    toolInitCallback?: (bridge: ToolBridge) => void,
    options?: ExecuteOptions,
  ): Promise<string>
}
