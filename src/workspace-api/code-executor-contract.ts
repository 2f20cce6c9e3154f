import type { CodeBlock, CodeBlockDelimiter } from './blocks.ts'
import type { CallOptions } from './contract.ts'
import type { File } from './files-contract.ts'

/** Blocks of code to execute, in this order. */
export interface CodeExecutionInput {
  readonly codeBlocks: readonly CodeBlock[]
  readonly executionId?: string
}

/** The output of all blocks, and the files that they made. */
export interface CodeExecutionResult {
  readonly output: string
  readonly outputFiles: readonly File[]
}

/** Executes blocks of code. */
export interface CodeExecutor {
  /** The output includes failures of blocks. @throws SandglassError when the infrastructure fails. */
  executeCode(input: CodeExecutionInput, options?: CallOptions): Promise<CodeExecutionResult>
  codeBlockDelimiter(): CodeBlockDelimiter
}
