import { isDeepStrictEqual } from 'node:util'
import { completedWith, difference, type Kind, short } from './kind.ts'
import { broken, double } from './host-tools.ts'

/** Scripts and requests that succeed. */
export const WORKING_KINDS: readonly Kind[] = [
  {
    name: 'quick',
    weight: 60,
    async run({ sg }, random) {
      const n = random.below(1e6)
      return difference(await sg.run(`emit_result({"n": ${n}, "even": ${n} % 2 == 0})`), completedWith(dataOf(n)))
    },
  },
  {
    name: 'events',
    weight: 8,
    async run({ sg }, random) {
      const count = 1 + random.below(200)
      let seen = 0
      for await (const event of sg.stream(
        `for i in range(${count}): emit_intermediate("n", i)\nemit_result(${count})`,
      )) {
        if (event.type === 'intermediate' && event.data === seen) seen += 1
        if (event.type === 'result') {
          const problem = difference(event.result, completedWith(count))
          if (problem !== undefined) return problem
        }
      }
      return seen === count ? undefined : `${seen} of ${count} events came in order`
    },
  },
  {
    name: 'stream left',
    weight: 2,
    async run({ sg }, random) {
      const leaveAt = random.below(5)
      for await (const event of sg.stream(
        'import time\nfor i in range(1000):\n    emit_intermediate("n", i)\n    time.sleep(0.01)',
      )) {
        if (event.type === 'intermediate' && Number(event.data) >= leaveAt) return undefined
      }
      return 'the stream ended by itself'
    },
  },
  {
    name: 'tool calls in turn',
    weight: 15,
    async run({ sg }, random) {
      const count = 1 + random.below(20)
      const result = await sg.run(`emit_result(sum(double(n=n) for n in range(${count})))`, { tools: [double] })
      return difference(result, completedWith(count * (count - 1))) ?? countOfCalls(result.toolCalls.length, count)
    },
  },
  {
    name: 'tool calls of threads',
    weight: 6,
    needs: 'threads',
    async run({ sg }, random) {
      const count = 4 + random.below(12)
      const script = `from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    emit_result(sum(pool.map(lambda n: double(n=n), range(${count}))))`
      const result = await sg.run(script, { tools: [double] })
      return difference(result, completedWith(count * (count - 1))) ?? countOfCalls(result.toolCalls.length, count)
    },
  },
  {
    name: 'tool calls of asyncio',
    weight: 6,
    async run({ sg }, random) {
      const count = 2 + random.below(12)
      const script = `import asyncio
async def main():
    return sum(await asyncio.gather(*(double(n=n) for n in range(${count}))))
emit_result(asyncio.run(main()))`
      const result = await sg.run(script, { tools: [double] })
      return difference(result, completedWith(count * (count - 1))) ?? countOfCalls(result.toolCalls.length, count)
    },
  },
  {
    name: 'tool that fails',
    weight: 4,
    async run({ sg }) {
      const script = `try:
    broken(n=1)
except ToolError as error:
    emit_result("caught")`
      return difference(await sg.run(script, { tools: [broken] }), completedWith('caught'))
    },
  },
  {
    name: 'files',
    weight: 8,
    async run({ sg }, random) {
      const given = Uint8Array.from({ length: random.below(100_000) }, () => random.below(256))
      const script = `import os
os.makedirs("out")
data = open("in.bin", "rb").read()
open("out/reversed.bin", "wb").write(data[::-1])
emit_result(len(data))`
      const result = await sg.run(script, { files: { 'in.bin': given }, collect: ['out/**'] })
      const files = result.files.map(({ path, content }) => [path, Buffer.from(content).toString('latin1')])
      const expected = [['out/reversed.bin', Buffer.from(given.toReversed()).toString('latin1')]]
      const problem = difference(result, completedWith(given.length))
      return problem ?? (isDeepStrictEqual(files, expected) ? undefined : `files: ${short(files)}`)
    },
  },
  {
    name: 'secret',
    weight: 4,
    async run({ sg }, random) {
      const secret = `sk-${Array.from({ length: 24 }, () => random.below(36).toString(36)).join('')}`
      const script = `import os, sys
value = os.environ["SOAK_SECRET"]
print(value, file=sys.stderr)
print(value)
emit_result({"long": len(value), "value": value})`
      const result = await sg.run(script, { secrets: { SOAK_SECRET: secret } })
      if (JSON.stringify(result).includes(secret)) return 'the secret is in the result'
      const long = (result.finalData as { long?: unknown } | null)?.long
      return result.status === 'completed' && long === secret.length ? undefined : short(result)
    },
  },
  {
    name: 'check',
    weight: 4,
    async run({ sg }) {
      const { violations } = await sg.check('import os\nemit_result(undefined_name)', { policy: 'standard' })
      const codes = violations.map(({ code }) => code)
      return codes.length === 1 ? undefined : `violations: ${short(violations)}`
    },
  },
  {
    name: 'rejected',
    weight: 3,
    async run({ sg }) {
      const result = await sg.run('emit_result(undefined_name)', { policy: 'standard' })
      return difference(result, { status: 'rejected', errorKind: 'validation' })
    },
  },
  {
    name: 'sandbox of other limits',
    weight: 3,
    async run({ sg }) {
      const result = await sg.run('emit_result(6 * 7)', { limits: { memoryBytes: 192 * 2 ** 20 } })
      return difference(result, completedWith(42))
    },
  },
  {
    name: 'solved task',
    weight: 3,
    async run({ sg }, random) {
      const n = random.below(1000)
      const answer = await sg.solve('Double the number', {
        model: () => Promise.resolve(`emit_result(double(n=${n}))`),
        tools: [double],
      })
      return answer.success && answer.finalData === 2 * n ? undefined : short(answer)
    },
  },
]

function dataOf(n: number): unknown {
  return { n, even: n % 2 === 0 }
}

function countOfCalls(found: number, expected: number): string | undefined {
  return found === expected ? undefined : `${found} calls on record in place of ${expected}`
}
