import type { CodeExecutionResult } from './code-executor-contract.ts'

/** Formats the result of an execution for people and models: output and names of files. */
export function codeExecutionResultText({ output, outputFiles }: CodeExecutionResult): string {
  if (output === '' && outputFiles.length === 0) return 'Code execution result: No output or errors.'
  const files = outputFiles.map(({ name }) => name).join('\n')
  return [
    'Code execution result:\n',
    output === '' ? '' : `${output}${outputFiles.length > 0 && output.endsWith('\n') ? '' : '\n'}`,
    outputFiles.length === 0 ? '' : ` Saved output files:\n${files}`,
  ].join('')
}
