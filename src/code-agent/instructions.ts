import { prepareTools, type ToolsInput } from '../tools/index.ts'
import type { CodeToolExecutor } from './code-tool-executor.ts'

/** Options of {@link codeAgentInstructions}. */
export interface InstructionsFor {
  readonly executor: Pick<CodeToolExecutor, 'availableDependencies' | 'workspaceFullPath'>
  readonly tools?: ToolsInput | undefined
  /** Maximum characters of the functions' stubs; further functions are listed by name. Default 8,000. */
  readonly maxStubChars?: number | undefined
}

const MAX_STUB_CHARS = 8000

/**
 * The part of a system prompt that tells a model how to have Python executed: the tags that {@link parseReply} reads, the
 * workspace, the packages and every tool with its name, description, input and output.
 * @throws TypeError for tools that cannot become functions.
 */
export function codeAgentInstructions({ executor, tools, maxStubChars = MAX_STUB_CHARS }: InstructionsFor): string {
  const { availableDependencies } = executor
  const stubs = tools === undefined ? '' : prepareTools(tools).stubs(maxStubChars)
  return [
    `You can have Python 3 executed. Write the script between <execution-code> and </execution-code>, once in a reply:

<pip-dependencies-to-install>pandas,openpyxl</pip-dependencies-to-install>
<execution-code>
print(1 + 1)
</execution-code>

- A person may read the script before it runs. The text between the tags is executed as it is: no code fence, no entities.
- What the script prints comes back to you. Nothing else of it remains, except for files in the workspace.
- <pip-dependencies-to-install> names the packages of PyPI that the script imports, separated by commas. Leave it out if there are none. Calling pip does not work.
- If the output begins with "Error:", fix the script and send it again as a whole.
- Leave both tags out to answer without a script.`,
    `The workspace is the directory ${executor.workspaceFullPath()}, where the script starts. Read and write files there.`,
    availableDependencies.length === 0
      ? ''
      : `Installed packages, which need not be named again: ${availableDependencies.join(', ')}.`,
    stubs === ''
      ? ''
      : `Functions that the script can call directly, without an import. A call that fails raises ToolError.
\`\`\`python
${stubs}
\`\`\``,
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}
