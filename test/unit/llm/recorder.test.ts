import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type LLMCaller, ModelError, recordModel, replayModel } from '../../../src/llm/index.ts'

const { signal } = new AbortController()
let directory: string
let file: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sandglass-recorder-'))
  file = join(directory, 'answers.jsonl')
})
afterEach(() => rm(directory, { recursive: true, force: true }))

const model: LLMCaller = async (prompt) => ({
  text: `re: ${prompt}`,
  promptTokens: 5,
  completionTokens: 7,
  latencyMs: 12,
  model: 'm',
})
const answerTo = (prompt: string): unknown => ({
  text: `re: ${prompt}`,
  promptTokens: 5,
  completionTokens: 7,
  latencyMs: 12,
  model: 'm',
})

async function record(...prompts: readonly string[]): Promise<void> {
  const recording = recordModel(file, model)
  for (const prompt of prompts) expect(await recording(prompt, { signal })).toEqual(answerTo(prompt))
}

describe('recorded answers (OR-10)', () => {
  test('are returned for their prompts, each once', async () => {
    await record('a', 'b', 'a\n"é😀"')
    const replay = replayModel(file)
    expect(await replay('a\n"é😀"', { signal })).toEqual(answerTo('a\n"é😀"'))
    expect(await replay('a', { signal })).toEqual(answerTo('a'))
    await expect(replay('a', { signal })).rejects.toThrow(
      new ModelError(`${file}: it has no answer to the prompt ca978112ca1b; record it again`),
    )
    expect(await replay('b', { signal })).toEqual(answerTo('b'))
  })

  test('are returned in their order, whatever the prompt', async () => {
    await record('a', 'b')
    const replay = replayModel(file, { match: 'order' })
    expect(await replay('x', { signal })).toEqual(answerTo('a'))
    expect(await replay('x', { signal })).toEqual(answerTo('b'))
    await expect(replay('x', { signal })).rejects.toThrow(
      new ModelError(`${file}: all its answers are used; record it again`),
    )
  })

  test('to the same prompt are returned in order', async () => {
    let count = 0
    const recording = recordModel(file, async () => String((count += 1)))
    for (let time = 0; time < 2; time += 1) await recording('a', { signal })
    const replay = replayModel(file)
    const texts = [await replay('a', { signal }), await replay('a', { signal })].map((one) =>
      typeof one === 'string' ? one : one.text,
    )
    expect(texts).toEqual(['1', '2'])
  })

  test('are complete in the file, one per line, and more are appended', async () => {
    await record('a')
    await record('b')
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
    expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([
      { prompt: 'a', text: 're: a', model: 'm', prompt_tokens: 5, completion_tokens: 7, latency_ms: 12 },
      { prompt: 'b', text: 're: b' },
    ])
  })

  test('are in a file that only its owner can read', async () => {
    await record('a')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
  })

  test('are not stored for a model that fails, whose error is unchanged', async () => {
    const failure = new Error('no key')
    const recording = recordModel(file, () => Promise.reject(failure))
    await expect(recording('a', { signal })).rejects.toBe(failure)
    await expect(readFile(file)).rejects.toThrow('ENOENT')
  })
})

describe('a file that cannot be replayed is rejected when it is opened', () => {
  test('because it does not exist', () => {
    expect(() => replayModel(file)).toThrow(/^replayModel: .*answers\.jsonl cannot be read: ENOENT/)
  })

  test('because a line is broken, by its number', async () => {
    await record('a')
    await appendFile(file, '{"prompt_sha256":')
    expect(() => replayModel(file)).toThrow(/cannot be read: line 2: /)
  })

  test('because a line holds no answer', async () => {
    await writeFile(file, '\n{"text":5}\n')
    expect(() => replayModel(file)).toThrow(
      new TypeError(`replayModel: ${file} cannot be read: line 2 is not a recorded answer`),
    )
  })
})
