import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chatCompletions } from '../../../src/index.ts'
import { type EntryPoint, keys, many, MiB, nestedJson, solving } from './entry-point.ts'

const BODIES: readonly { name: string; unit: string; sizes: readonly number[]; body: (size: number) => string }[] = [
  {
    name: 'a long text',
    unit: 'characters',
    sizes: [100_000, 1_000_000, 15_000_000],
    body: (n) => JSON.stringify({ choices: [{ message: { content: 'x'.repeat(n) } }] }),
  },
  { name: 'choices', unit: 'choices', sizes: [1000, 20_000, 120_000], body: (n) => `{"choices":${many(n, '{}')}}` },
  { name: 'keys', unit: 'keys', sizes: [1000, 20_000, 120_000], body: keys },
  { name: 'levels', unit: 'levels', sizes: [1000, 100_000, 2_000_000], body: nestedJson },
]

/** Bodies of answers of a model's server. */
export const HTTP_ENTRY_POINTS: readonly EntryPoint[] = BODIES.map(({ body, ...rest }) => ({
  ...rest,
  name: `HTTP answer: ${rest.name}`,
  from: 'a model',
  limitBytes: 16 * MiB,
  prepare: async (size) => {
    const bytes = Buffer.from(body(size))
    const server = createServer((_request, response) => response.end(bytes))
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    const model = chatCompletions({ url, model: 'm', maxRetries: 0 })
    const { act, ...task } = await solving([], { model, maxRetries: 0 })
    return {
      act,
      async [Symbol.asyncDispose]() {
        server.closeAllConnections()
        server.close()
        await task[Symbol.asyncDispose]()
      },
    }
  },
}))
