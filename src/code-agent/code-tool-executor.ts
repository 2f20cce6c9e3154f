import type { ToolsInput } from '../tools/index.ts'

/** The way from a script to the host's tools. */
export interface ToolBridge {
  /** The channel of the sandbox: no port is open, and nothing has to connect. */
  readonly transport: 'stdio'
  /** The Python names of the tools. */
  readonly tools: readonly string[]
}

/** Executes the Python of a code agent. */
export interface CodeToolExecutor extends AsyncDisposable {
  /** Packages that every script can import, as `pip` names them. */
  readonly availableDependencies: readonly string[]
  /** The directory in which scripts start, as they see it. */
  workspaceFullPath(): string
  /**
   * Runs a script, and resolves with what it printed and, in JSON, its result if it gave one. Everything that goes wrong is text
   * that begins with `Error:`, for the model: a package that cannot be installed with the installer's reason (the script then
   * did not run, and the others are installed), an exception with its traceback, a crash, a limit.
   * @param libraries packages that the script imports, as `pip` names them. They stay for later scripts.
   * @param toolInitCallback called when the script is about to run, with its tools.
   * @throws SandglassError when the machinery fails, `closed` after the executor was disposed of; TypeError for tools that cannot become functions.
   */
  execute(
    tools: ToolsInput,
    code: string,
    libraries: readonly string[],
    toolInitCallback?: (bridge: ToolBridge) => void,
  ): Promise<string>
}
