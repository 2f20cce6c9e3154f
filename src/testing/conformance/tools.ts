import assert from 'node:assert/strict'
import type { ToolCallFrame, ToolParameter, ToolSignature } from '../../protocol/index.ts'
import type { Bed } from './bed.ts'
import { type HarnessPeer, python, type RunFrames } from './peer.ts'

const MiB = 1024 * 1024

/** Host tools as functions of a script: `tool_call` out, `tool_result` in. */
export function toolTests(at: Bed): void {
  at.test('a host tool is a function with defaults, text and keywords; its answer is the value', () =>
    at.with({}, async (peer) => {
      const script = python`
        import inspect
        got = search("a", limit=3)
        emit_result([got, got.name, got["deep"].x, search("b"), search(query="c", note=None),
                     str(inspect.signature(search)), inspect.getdoc(search)])
      `
      const calls: unknown[] = []
      const { result } = await answered(peer, script, [SEARCH], ({ name, args }) => {
        calls.push([name, args])
        return { result: { name: 'n', deep: { x: 1 } } }
      })
      const answer = { name: 'n', deep: { x: 1 } }
      assert.deepEqual(calls, [
        ['search', { query: 'a', max: 3 }],
        ['search', { query: 'b', max: 10 }],
        ['search', { query: 'c', max: 10 }],
      ])
      assert.deepEqual(result, [
        answer,
        'n',
        1,
        answer,
        answer,
        "(query: 'str', limit: 'int' = 10, note: 'str' = None) -> 'Found'",
        'Finds.',
      ])
    }),
  )

  at.test('a call that fails is a ToolError with its code; uncaught it is the error of the script', () =>
    at.with({}, async (peer) => {
      const refuse = (): Answer => ({ error: { code: 'no_such_order', message: 'no order 7' } })
      const caught = python`
        try:
            search("a")
        except ToolError as error:
            emit_result([error.code, str(error)])
      `
      assert.deepEqual((await answered(peer, caught, [SEARCH], refuse)).result, ['no_such_order', 'no order 7'])
      const uncaught = await answered(peer, 'x = 1\nsearch("a")\n', [SEARCH], refuse)
      // From 3.13 on Python marks the call in a line below.
      const events = uncaught.events.map(({ traceback: told, ...event }) =>
        typeof told !== 'string' ? event : { ...event, traceback: told.replace(/^ *[~^]+\n/gm, '') },
      )
      const traceback =
        'Traceback (most recent call last):\n  File "<script>", line 2, in <module>\n    search("a")\nToolError: no order 7\n'
      assert.deepEqual(events.slice(1), [
        { type: 'error', message: 'ToolError: no order 7', traceback, kind: 'exception' },
      ])
    }),
  )

  for (const [how, script] of [
    [
      'threads',
      python`
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(8) as pool:
            emit_result(list(pool.map(search, "abcdefgh")))
      `,
    ],
    [
      'coroutines',
      python`
        import asyncio
        async def main():
            first = asyncio.create_task(search("a"))
            return await asyncio.gather(first, *[search(c) for c in "bcdefgh"])
        emit_result(asyncio.run(main()))
      `,
    ],
  ] as const) {
    at.test(
      `calls of ${how} are under way together, and answers may come in any order`,
      () =>
        at.with({}, async (peer) => {
          const request = peer.request(script, { tools: [SEARCH] })
          const { execution_id } = request
          await peer.send(request)
          const calls: ToolCallFrame[] = []
          while (calls.length < 8) calls.push(await peer.expect('tool_call'))
          for (const { id, args } of calls.toReversed()) {
            await peer.send({ type: 'tool_result', execution_id, id, result: `answer to ${String(args['query'])}` })
          }
          const want = Array.from('abcdefgh').map((letter) => `answer to ${letter}`)
          assert.deepEqual((await peer.finish(execution_id)).result, want)
        }),
      how === 'threads' ? needsThreads : undefined,
    )
  }

  at.test(
    'events go on while a call is under way',
    () =>
      at.with({}, async (peer) => {
        const script = python`
          import threading
          def beat():
              for n in range(3):
                  emit_log(str(n))
          thread = threading.Thread(target=lambda: search("a"))
          thread.start()
          beat()
          thread.join()
          emit_result("done")
        `
        const request = peer.request(script, { tools: [SEARCH] })
        await peer.send(request)
        const seen = [await peer.next(), await peer.next(), await peer.next(), await peer.next()]
        assert.deepEqual(seen.map((frame) => String(frame?.type)).toSorted(), ['log', 'log', 'log', 'tool_call'])
        const call = seen.find((frame) => frame?.type === 'tool_call') as ToolCallFrame
        await peer.send({ type: 'tool_result', execution_id: request.execution_id, id: call.id, result: null })
        assert.equal((await peer.finish(request.execution_id)).result, 'done')
      }),
    needsThreads,
  )

  at.test('arguments and answers of eight megabytes come whole, and count towards no limit of the output', () =>
    at.with({}, async (peer) => {
      const size = 8 * MiB
      const script = `got = search("x" * ${size})\nemit_result([len(got), got == "y" * ${size}])`
      const options = { max_output_bytes: 4096 }
      const answer = ({ args }: ToolCallFrame): Answer => {
        assert.equal(args['query'], 'x'.repeat(size))
        return { result: 'y'.repeat(size) }
      }
      assert.deepEqual((await answered(peer, script, [SEARCH], answer, options)).result, [size, true])
    }),
  )

  at.test('arguments that JSON cannot carry, or that are too large, are a ToolError and no call', () =>
    at.with({}, async (peer) => {
      const script = python`
        codes = []
        for value in (object(), float("nan"), 2 ** 60, "x" * (17 << 20)):
            try:
                search(value)
            except ToolError as error:
                codes.append(error.code)
        emit_result(codes)
      `
      const { result, events } = await answered(peer, script, [SEARCH], () => ({ result: null }))
      assert.deepEqual([result, events.length], [Array.from({ length: 4 }, () => 'invalid_arguments'), 1])
    }),
  )

  at.test('an answer to another run, to no call, or after the end changes nothing', () =>
    at.with({}, async (peer) => {
      const first = peer.request('search("a")\nemit_result(1)', { tools: [SEARCH] })
      await peer.send(first)
      const call = await peer.expect('tool_call')
      const answer = { type: 'tool_result', execution_id: first.execution_id, id: call.id } as const
      await peer.send({ ...answer, execution_id: 'another', result: 'forged' }, { ...answer, id: 'nobody', result: 2 })
      await peer.send({ ...answer, result: 3 })
      assert.equal((await peer.finish(first.execution_id)).result, 1)
      const second = peer.request('emit_result(search("b"))', { tools: [SEARCH] })
      await peer.send({ ...answer, result: 'late' }, second)
      const { id } = await peer.expect('tool_call')
      await peer.send({ ...answer, id, result: 'of the run before' })
      await peer.send({ type: 'tool_result', execution_id: second.execution_id, id, result: 'mine' })
      assert.equal((await peer.finish(second.execution_id)).result, 'mine')
    }),
  )

  at.test('a run without tools makes no call, whatever its process writes, and has none of an earlier run', () =>
    at.with({}, async (peer) => {
      await answered(peer, 'emit_result(search("a"))', [SEARCH], () => ({ result: 1 }))
      const forged = python`
        import os
        os.write(3, b'{"type":"tool_call","id":"1","name":"search","args":{}}\n')
        emit_result(["search" in globals(), "describe_tool" in globals()])
      `
      const { events, result } = await peer.run(forged)
      assert.deepEqual([events.map(({ type }) => type), result], [['final_result'], [false, false]])
    }),
  )

  at.test(
    'a process that the script forked cannot call tools',
    () =>
      at.with({}, async (peer) => {
        const script = python`
          import os
          read, write = os.pipe()
          if os.fork() == 0:
              try:
                  search("a")
              except ToolError as error:
                  os.write(write, error.code.encode())
              os._exit(0)
          os.wait()
          emit_result(os.read(read, 100).decode())
        `
        const { events, result } = await answered(peer, script, [SEARCH], () => ({ result: null }))
        assert.deepEqual([result, events.length], ['wrong_process', 1])
      }),
    (report) => (report.capabilities.processes ? undefined : 'no processes'),
  )

  at.test('a call that nobody answers ends with the deadline of the script', () =>
    at.with({}, async (peer) => {
      const request = peer.request('search("a")', { tools: [SEARCH], timeout_sec: 0.5 })
      await peer.send(request)
      await peer.expect('tool_call')
      const { events, done } = await peer.finish(request.execution_id)
      assert.deepEqual(
        [events.map(({ type, kind, message }) => [type, kind, message]), done.reusable],
        [[['error', 'timeout', 'Script timed out after 0.5s']], true],
      )
    }),
  )

  at.test('describe_tool tells the signature, the text and the classes of a tool', () =>
    at.with({}, async (peer) => {
      const script = python`
        told = [describe_tool("search"), describe_tool(search) == describe_tool("search")]
        try:
            describe_tool("serch")
        except ToolError as error:
            told.append([error.code, str(error)])
        emit_result(told)
      `
      const { result } = await answered(peer, script, [SEARCH], () => ({ result: null }))
      const text =
        'class Found(TypedDict):\n    name: str\n\n' +
        'def search(query: str, limit: int = 10, note: str = None) -> Found:\n    """\n    Finds.\n    """'
      assert.deepEqual(result, [text, true, ['unknown_tool', "no tool 'serch'; there are search"]])
    }),
  )
}

type Answer = { readonly result: unknown } | { readonly error: { readonly code: string; readonly message: string } }

const needsThreads = (report: { readonly capabilities: { readonly threads: boolean } }): string | undefined =>
  report.capabilities.threads ? undefined : 'no threads'

const parameter = (name: string, type: string, more: Partial<ToolParameter> = {}): ToolParameter => ({
  name,
  type,
  required: false,
  nullable: false,
  ...more,
})

const SEARCH: ToolSignature = {
  name: 'search',
  params: [
    parameter('query', 'str', { required: true }),
    parameter('limit', 'int', { key: 'max', default: 10 }),
    parameter('note', 'str'),
  ],
  more: false,
  returns: 'Found',
  doc: 'Finds.',
  types: 'class Found(TypedDict):\n    name: str\n',
}

/** Runs a script and answers each of its calls at once. */
async function answered(
  peer: HarnessPeer,
  script: string,
  tools: ToolSignature[],
  answer: (call: ToolCallFrame) => Answer,
  options: Parameters<HarnessPeer['request']>[1] = {},
): Promise<RunFrames> {
  const request = peer.request(script, { tools, ...options })
  const { execution_id } = request
  await peer.send(request)
  return peer.finish(execution_id, async (call) => {
    await peer.send({ type: 'tool_result', execution_id, id: call.id, ...answer(call) })
  })
}
