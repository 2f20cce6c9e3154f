import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const ROOT = join(import.meta.dirname, '../../..')
const MAIN = join(ROOT, 'examples/orders/main.ts')

const run = async (env: NodeJS.ProcessEnv): Promise<string> => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--disable-warning=ExperimentalWarning', MAIN], {
    env: { ...process.env, MODEL: undefined, ...env },
  })
  return withoutChance(stdout)
}

const withoutChance = (output: string): string =>
  output
    .replace(/id {10}\S+/, 'id          …')
    .replace(/\d+\.\d ms/, '0.0 ms')
    .replace(/sandbox {5}.*/, 'sandbox     local')

describe.skipIf(skip)('the example orders', () => {
  test('solves its task with a real database, after two mistakes, and prints the output in its README', async () => {
    const readme = readFileSync(join(ROOT, 'examples/orders/README.md'), 'utf8')
    const [, shown = ''] = /```text\n(Task\n.*?)```/s.exec(readme) ?? []
    const output = await run({})
    expect(output).toBe(withoutChance(shown))
    expect(output).toContain('  status      completed\n  attempts    3\n  tool calls  9\n')
    expect(output).toContain(
      '  A-2       4500   15 days late\n  A-4       9900   12 days late\n  A-8       1500   11 days late\n',
    )
  })

  test('asks any model behind an OpenAI-compatible address', async () => {
    const asked: { authorization: string | undefined; model: string; prompt: string }[] = []
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const body = (await Array.fromAsync(request)).join('')
      const { model, messages } = JSON.parse(body) as { model: string; messages: { content: string }[] }
      asked.push({ authorization: request.headers.authorization, model, prompt: messages[0]?.content ?? '' })
      const content =
        '```python\nemit_result([{"customer": "Costa", "late": len(search_orders(min_days_late=99)), "refunded": 0}])\n```'
      response.end(JSON.stringify({ model, choices: [{ message: { content } }] }))
    }
    const server = createServer((request, response) => void answer(request, response))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const { port } = server.address() as AddressInfo
      const env = { MODEL: 'coder', OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`, OPENAI_API_KEY: 'key-of-a-test' }
      expect(await run(env)).toContain('Answer\n  customer  late  refunded\n  Costa     0     0\n')
      expect(asked.map(({ authorization, model }) => [authorization, model])).toEqual([
        ['Bearer key-of-a-test', 'coder'],
      ])
      expect(asked[0]?.prompt).toContain('def search_orders(min_days_late: int = 0) -> list[Order]')
    } finally {
      server.close()
    }
  })
})
