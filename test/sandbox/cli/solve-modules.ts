import type { Cli } from '../../support/cli/sandglass.ts'
import { libraryOfCli } from '../../support/cli/program.ts'

const SANDGLASS = JSON.stringify(libraryOfCli())

/** Wraps Python in a fence, as a model does. */
export function fence(script: string): string {
  return `\`\`\`python\n${script}\n\`\`\``
}

/** Writes a module whose model gives these answers in order and repeats the last one; returns its path. */
export function modelModule(cli: Cli, name: string, ...answers: readonly string[]): string {
  return cli.file(
    name,
    `const answers = ${JSON.stringify(answers)}
let asked = 0
export default async (prompt: string) => {
  const text = answers[Math.min(asked, answers.length - 1)]
  asked += 1
  return { text, promptTokens: 100, completionTokens: 10, model: 'scripted-1' }
}
`,
  )
}

/** Writes a module with the tools `search`, which finds two orders, and `customer`, which finds none; returns its path. */
export function orderTools(cli: Cli): string {
  return cli.file(
    'order-tools.ts',
    `import { defineTool, ToolCallError } from ${SANDGLASS}
const input = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name], additionalProperties: false })
export default [
  defineTool({
    name: 'search', description: 'Finds orders.', effect: 'read', input: input('status'),
    execute: ({ status }) => [{ id: 'A-1', total: 120, status }, { id: 'A-2', total: 80, status }],
  }),
  defineTool({
    name: 'customer', description: 'Who ordered.', effect: 'read', input: input('id'),
    execute: ({ id }) => { throw new ToolCallError('not_found', 'no customer of ' + id) },
  }),
]
`,
  )
}

/** Fails in line 6 after two calls, a log, an intermediate and a line on stdout. */
export const FAILING_SCRIPT = `orders = search(status="late")
try:
    customer(id="A-1")
except ToolError as error:
    print("nobody:", error)
total = orders[0]["price"]
emit_result(total)`

/** A script with a tool call that the checker rejects. */
export const REJECTED_SCRIPT = 'orders = search(state="late")\nemit_result(orders)'

/** A correct script. */
export const RIGHT_SCRIPT = 'emit_result({"total": sum(order["total"] for order in search(status="late"))})'

/** Solves a task on the local engine with a model whose first script is rejected, and whose others fail. */
export async function solveInVain(
  cli: Cli,
  task: string,
  maxRetries: number,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const model = modelModule(cli, 'fails.ts', fence(REJECTED_SCRIPT), fence(FAILING_SCRIPT))
  const flags = ['--tools', orderTools(cli), '--max-retries', String(maxRetries), '--engine', 'local']
  await cli.run(['solve', task, '--model', model, ...flags], { env })
}
