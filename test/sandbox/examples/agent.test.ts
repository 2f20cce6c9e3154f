import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const EXAMPLE = join(import.meta.dirname, '../../../examples/agent')

async function run(env: NodeJS.ProcessEnv): Promise<string> {
  const args = ['--disable-warning=ExperimentalWarning', join(EXAMPLE, 'main.ts')]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { ...process.env, MODEL: undefined, ...env },
  })
  return stdout
}

describe.skipIf(skip)('the example agent', () => {
  test('reads invoices, writes a table and sends reminders, and prints the output in its README', async () => {
    const readme = readFileSync(join(EXAMPLE, 'README.md'), 'utf8')
    const [, shown = ''] = /```text\n([^]*?)```/.exec(readme) ?? []
    expect((await run({})).replaceAll(/ +$/gm, '')).toBe(shown)
  })

  test('asks any chat model of LangChain', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sandglass-agent-model-'))
    try {
      const path = join(directory, 'model.mjs')
      const script = '<execution-code>\\nopen("overdue.csv", "w").write("invoice\\\\n")\\n</execution-code>'
      writeFileSync(
        path,
        `let calls = 0
export default { invoke: async (messages) => ({ content: calls++ === 0 ? '${script}' : 'Asked with ' + messages.length + ' messages.' }) }`,
      )
      expect(await run({ MODEL: path })).toMatch(/Answer\n {2}Asked with 4 messages\.\n[^]*overdue\.csv\n {2}invoice\n/)
    } finally {
      rmSync(directory, { recursive: true })
    }
  })
})
