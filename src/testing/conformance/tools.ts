import assert from 'node:assert/strict'
import type { HostFrame, ToolCallFrame, ToolParameter, ToolSignature } from '../../protocol/index.ts'
import type { Fixture } from './fixture.ts'
import { type HarnessPeer, python, type RunFrames } from './peer.ts'

const MiB = 1024 * 1024

/** Tests host tools as functions of a script: `tool_call` out, `tool_result` in. */
export function registerToolTests(at: Fixture): void {
  at.test('a host tool is a function with defaults, text and keywords; its answer is the value', ['harness'], () =>
    at.withAny(async (peer) => {
      const script = python`
        import inspect
        got = search("a", limit=3)
        emit_result([got, got.name, got["deep"].x, search("b"), search(query="c", note=None),
                     str(inspect.signature(search)), inspect.getdoc(search)])
      `
      const calls: unknown[] = []
      const { result } = await runWithAnswers(peer, script, [SEARCH], ({ name, args }) => {
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

  at.test('a call that fails is a ToolError with its code; uncaught it is the error of the script', ['harness'], () =>
    at.withAny(async (peer) => {
      const refuse = (): Answer => ({ error: { code: 'no_such_order', message: 'no order 7' } })
      const caught = python`
        try:
            search("a")
        except ToolError as error:
            emit_result([error.code, str(error)])
      `
      assert.deepEqual((await runWithAnswers(peer, caught, [SEARCH], refuse)).result, ['no_such_order', 'no order 7'])
      const uncaught = await runWithAnswers(peer, 'x = 1\nsearch("a")\n', [SEARCH], refuse)
      // Python 3.13 and later mark the call in a line below.
      const events = uncaught.events.map(({ traceback, ...event }) =>
        typeof traceback !== 'string' ? event : { ...event, traceback: traceback.replace(/^ *[~^]+\n/gm, '') },
      )
      const traceback =
        'Traceback (most recent call last):\n  File "<script>", line 2, in <module>\n    search("a")\nToolError: no order 7\n'
      assert.deepEqual(events.slice(1), [
        { type: 'error', message: 'ToolError: no order 7', traceback, kind: 'exception' },
      ])
    }),
  )

  at.test('an error that the script prints itself shows no frame of the harness', ['harness', 'webassembly'], () =>
    at.with({}, async (peer) => {
      const script = python`
        import asyncio, socket, sys, time, traceback
        told = []
        async def awaited(function, *args):
            return await function(*args)
        for call in (
            lambda: emit_result({1j, 2j}),
            lambda: emit_intermediate("part", {1j: 1}),
            lambda: describe_tool("serch"),
            lambda: search("fail"),
            lambda: search({1j}),
            lambda: search("find").nmae,
            lambda: fetch({}),
            lambda: asyncio.run(awaited(search, "fail")),
            lambda: asyncio.run(awaited(fetch, {})),
            lambda: asyncio.run(asyncio.to_thread(emit_result, {1j})),
            lambda: time.sleep(-1),
            lambda: socket.getaddrinfo("name.invalid", 80),
        ):
            try:
                call()
            except BaseException:
                told.append(traceback.format_exc().splitlines())
        emit_result([sys.version_info >= (3, 11), told])
      `
      const fetch = { name: 'fetch', source: 'async def fetch(row):\n    return row["id"]\n', stub: '' }
      const { result } = await runWithAnswers(
        peer,
        script,
        [SEARCH],
        ({ args }) =>
          args['query'] === 'fail' ? { error: { code: 'gone', message: 'no order' } } : { result: { name: 'n' } },
        { tool_sources: [fetch] },
      )
      const [isRecent, told] = result as [boolean, string[][]]
      assert.deepEqual(
        told.map((lines) => lines.at(-1)?.replace(/: .*/, '')),
        'ConversionError ConversionError ToolError ToolError ToolError AttributeError KeyError ToolError KeyError ConversionError ValueError socket.gaierror'.split(
          ' ',
        ),
      )
      const harness = told.map((lines) =>
        lines.filter((line) => /^ *File ".*(?:sandglass_harness\/|<tool>")/.test(line)),
      )
      // Python 3.10 keeps the frame of the function that the script called.
      for (const lines of harness) assert.ok(lines.length <= (isRecent ? 0 : 1), lines.join('\n'))
      assert.deepEqual(
        told.filter((lines) => lines.some((line) => line.startsWith('During handling'))),
        [],
      )
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
      ['broker', 'webassembly'],
      () =>
        at.withAny(async (peer) => {
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
    ['harness'],
    () =>
      at.withAny(async (peer) => {
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

  at.test(
    'arguments of three megabytes and answers of eight come whole, and count towards no limit of the output',
    ['broker', 'channel'],
    () =>
      at.withAny(async (peer) => {
        const [asked, answered] = [3 * MiB, 8 * MiB]
        const script = `got = search("x" * ${asked})\nemit_result([len(got), got == "y" * ${answered}])`
        const options = { max_output_bytes: 4096 }
        const answer = ({ args }: ToolCallFrame): Answer => {
          assert.equal(args['query'], 'x'.repeat(asked))
          return { result: 'y'.repeat(answered) }
        }
        assert.deepEqual((await runWithAnswers(peer, script, [SEARCH], answer, options)).result, [answered, true])
      }),
  )

  at.test('arguments that JSON cannot carry, or that are too large, are a ToolError and no call', ['harness'], () =>
    at.withAny(async (peer) => {
      const script = python`
        codes = []
        for value in (object(), float("nan"), 2 ** 60, "x" * (5 << 20)):
            try:
                search(value)
            except ToolError as error:
                codes.append(error.code)
        emit_result(codes)
      `
      const { result, events } = await runWithAnswers(peer, script, [SEARCH], () => ({ result: null }))
      assert.deepEqual([result, events.length], [Array.from({ length: 4 }, () => 'invalid_arguments'), 1])
    }),
  )

  at.test('an answer to another run, to no call, or after the end changes nothing', ['broker'], () =>
    at.withAny(async (peer) => {
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

  at.test('the fields of an answer may come in any order', ['broker'], () =>
    at.withAny(async (peer) => {
      const calls = '[search(name) for name in "abcd"]'
      const script = `try:\n    search("first")\nexcept ToolError as error:\n    emit_result([error.code, *${calls}])`
      const request = peer.request(script, { tools: [SEARCH] })
      const { execution_id } = request
      await peer.send(request)
      const type = 'tool_result'
      const result = { id: 'not the id of a call' }
      const inEachOrder: readonly ((id: string) => HostFrame)[] = [
        (id) => ({ error: { message: 'no', code: 'nothing_found' }, id, execution_id, type }),
        (id) => ({ result, id, execution_id, type }),
        (id) => ({ type, id, result, execution_id }),
        (id) => ({ id, result, type, execution_id }),
        (id) => ({ execution_id, type, result, id }),
      ]
      for (const ordered of inEachOrder) {
        const { id } = await peer.expect('tool_call')
        // An answer to another run belongs to no call, even in the same order.
        await peer.send({ ...ordered(id), execution_id: 'another' } as HostFrame, ordered(id))
      }
      assert.deepEqual((await peer.finish(execution_id)).result, ['nothing_found', result, result, result, result])
    }),
  )

  at.test(
    'a run without tools makes no call, even by forged frames, and has no tool of an earlier run',
    ['broker'],
    () =>
      at.withAny(async (peer) => {
        await runWithAnswers(peer, 'emit_result(search("a"))', [SEARCH], () => ({ result: 1 }))
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
    ['harness'],
    () =>
      at.withAny(async (peer) => {
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
        const { events, result } = await runWithAnswers(peer, script, [SEARCH], () => ({ result: null }))
        assert.deepEqual([result, events.length], ['wrong_process', 1])
      }),
    (report) => (report.capabilities.processes ? undefined : 'no processes'),
  )

  at.test('a call that nobody answers ends with the deadline of the script', ['broker'], () =>
    at.withAny(async (peer) => {
      const request = peer.request('search("a")', { tools: [SEARCH], timeout_sec: 3 })
      await peer.send(request)
      await peer.expect('tool_call')
      const { events, done } = await peer.finish(request.execution_id)
      assert.deepEqual(
        [events.map(({ type, kind, message }) => [type, kind, message]), done.reusable],
        [[['error', 'timeout', 'Script timed out after 3s']], true],
      )
    }),
  )

  at.test('describe_tool returns the signature, the text and the classes of a tool', ['harness'], () =>
    at.withAny(async (peer) => {
      const script = python`
        told = [describe_tool("search"), describe_tool(search) == describe_tool("search")]
        try:
            describe_tool("serch")
        except ToolError as error:
            told.append([error.code, str(error)])
        emit_result(told)
      `
      const { result } = await runWithAnswers(peer, script, [SEARCH], () => ({ result: null }))
      const text =
        'class Found(TypedDict):\n    name: str\n\n' +
        'def search(query: str, limit: int = 10, note: str = None) -> Found:\n    """\n    Finds.\n    """'
      assert.deepEqual(result, [text, true, ['unknown_tool', "no tool 'serch'; available tools: search"]])
    }),
  )
}

type Answer = { readonly result: unknown } | { readonly error: { readonly code: string; readonly message: string } }

/** Skips a case on engines whose scripts cannot start threads. */
export const needsThreads = (report: { readonly capabilities: { readonly threads: boolean } }): string | undefined =>
  report.capabilities.threads ? undefined : 'no threads'

const parameter = (name: string, type: string, more: Partial<ToolParameter> = {}): ToolParameter => ({
  name,
  type,
  required: false,
  nullable: false,
  ...more,
})

/** A tool with a required, a defaulted and an optional parameter. */
export const SEARCH: ToolSignature = {
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
async function runWithAnswers(
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
