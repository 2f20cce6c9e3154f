import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { modelServer, reply } from '../../support/llm/model-server.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { lastLine } from '../../support/cli/sandglass.ts'
import { makeSolveCommand } from './solve-command.ts'
import { fence } from './solve-modules.ts'

const { skip } = await requireLocalEngine()
const command = makeSolveCommand()
afterAll(() => command[Symbol.dispose]())
const { cli, solve } = command

describe.skipIf(skip)('sandglass solve with an OpenAI-compatible address', () => {
  const KEY = 'sk-test-1234567890abcdef'

  test.each(['--model-url', 'OPENAI_BASE_URL'])('given by %s, sends the key and shows it nowhere', async (way) => {
    await using server = await modelServer(
      reply(200, {
        model: 'local-model',
        choices: [{ message: { content: fence(`emit_result("${KEY}"[:3])`) } }],
        usage: { prompt_tokens: 7, completion_tokens: 5 },
      }),
    )
    const place = join(cli.directory, `key-${way}`)
    const args = ['Say it', '--model', 'tiny', '--events', `--journal=${place}`]
    const env = { OPENAI_API_KEY: KEY, ...(way === 'OPENAI_BASE_URL' ? { OPENAI_BASE_URL: server.url } : {}) }
    const ended = await solve('key', way === '--model-url' ? [...args, way, server.url] : args, env)
    expect(lastLine(ended)).toMatchObject({ success: true, models: ['local-model'], prompt_tokens: 7 })
    expect(server.asked.map(({ path, headers }) => [path, headers.authorization])).toEqual([
      ['/v1/chat/completions', `Bearer ${KEY}`],
    ])
    const files = readdirSync(place).map((name) => readFileSync(join(place, name), 'utf8'))
    expect([ended.stdout, ended.stderr, ...files].filter((text) => text.includes(KEY))).toEqual([])
    expect(files.join('')).toContain('[redacted:OPENAI_API_KEY]')
  })

  test('that refuses the key, reports it without showing the key', async () => {
    await using server = await modelServer(reply(401, { error: { message: `Incorrect API key provided: ${KEY}` } }))
    const args = ['Say it', '--model', 'tiny', '--model-url', server.url]
    const ended = await solve('refused', args, { OPENAI_API_KEY: KEY })
    expect([ended.code, ended.stdout]).toEqual([7, ''])
    expect(ended.stderr).toContain(
      'answered 401: {"error":{"message":"Incorrect API key provided: [redacted:apiKey]"}}',
    )
    expect(ended.stderr).not.toContain(KEY)
  })
})
