import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import type { Fixture } from './fixture.ts'
import { type HarnessPeer, python } from './peer.ts'
import { needsThreads, SEARCH } from './tools.ts'

/** The time limit of a script, in seconds, and the longer time that a tool takes, in milliseconds. */
const [TIMEOUT_SEC, TOOL_MS] = [3, 3500]
/** The end of a run that gets a sixth of a processor while its call is under way. */
const MOST_MS = 6 * TIMEOUT_SEC * 1000

/** Tests the deadline of a script that calls tools: only the time in which the host executes them moves it. */
export function registerToolTimeTests(at: Fixture): void {
  at.test('time in which the host executes a tool is not the time of the script', ['broker', 'webassembly'], () =>
    at.withAny(async (peer) => {
      const request = peer.request('emit_result(search("a"))', WAITING)
      const { execution_id } = request
      const told = { type: 'tool_time', execution_id } as const
      await peer.send(request)
      const { id } = await peer.expect('tool_call')
      await peer.send({ ...told, executed_ms: 0, executing: true })
      await setTimeout(TOOL_MS)
      await peer.send({ ...told, executed_ms: TOOL_MS, executing: false })
      await peer.send({ type: 'tool_result', execution_id, id, result: 'late' })
      const { result, done } = await peer.finish(execution_id)
      assert.deepEqual([result, done.ending?.cause], ['late', 'exit'])
      // After the end of its run, or for another run, the same frame is late.
      const next = peer.request('while True: pass', WAITING)
      await peer.send({ ...told, executed_ms: 0, executing: true }, next, {
        ...told,
        executed_ms: 60_000,
        executing: true,
      })
      await timesOut(peer, next.execution_id)
    }),
  )

  for (const [what, script, skip] of HOSTILE_WAITS) {
    at.test(
      `a slow tool buys no time for ${what}`,
      ['broker', 'webassembly', 'kernel'],
      () =>
        at.withAny(async (peer) => {
          const request = peer.request(script, WAITING)
          const { execution_id } = request
          await peer.send(request)
          await peer.expect('tool_call')
          await peer.send({ type: 'tool_time', execution_id, executed_ms: 0, executing: true })
          await timesOut(peer, execution_id)
        }),
      skip,
    )
  }

  at.test(
    'a call that the host does not execute, and forged and repeated calls, move nothing',
    ['broker', 'webassembly'],
    () =>
      at.withAny(async (peer) => {
        const script = python`
        import json, os
        for n in range(1000):
            frame = {"type": "tool_call", "id": "1", "name": "search", "args": {}}
            os.write(3, json.dumps(frame).encode() + b"\n")
            os.write(3, b'{"type":"tool_time","executed_ms":60000,"executing":true}\n')
        search("a")
      `
        const request = peer.request(script, WAITING)
        await peer.send(request)
        await timesOut(peer, request.execution_id)
      }),
  )
}

/**
 * Settles when the run ends by its timeout. While its call is under way, the deadline moves by the processor time that a busy machine
 * does not give to the script. If the time of its call moved the deadline, it would end after a minute.
 */
async function timesOut(peer: HarnessPeer, id: string): Promise<void> {
  const { events, done } = await peer.finish(id)
  const errors = events.filter(({ type }) => type === 'error').map(({ message, kind }) => [message, kind])
  assert.deepEqual(errors, [[`Script timed out after ${TIMEOUT_SEC}s`, 'timeout']])
  assert.deepEqual([done.ending?.cause, done.reusable], ['timeout', true])
  assert.ok(done.duration_ms !== undefined && done.duration_ms < MOST_MS, `it took ${done.duration_ms} ms`)
}

const needsProcesses = (report: { readonly capabilities: { readonly processes: boolean } }): string | undefined =>
  report.capabilities.processes ? undefined : 'no processes'

/** Scripts that use the processor while a call is under way, and swallow the timeout. */
const HOSTILE_WAITS = [
  [
    'a loop in another thread',
    python`
      import threading
      def burn():
          while True: pass
      threading.Thread(target=burn, daemon=True).start()
      while True:
          try: search("a")
          except BaseException: pass
    `,
    needsThreads,
  ],
  [
    'a loop beside a coroutine',
    python`
      import asyncio
      async def main():
          call = asyncio.create_task(search("a"))
          await asyncio.sleep(0)
          while True:
              try:
                  while True: pass
              except BaseException: pass
      asyncio.run(main())
    `,
    undefined,
  ],
  [
    'processes that nobody waits for',
    python`
      import os, signal, threading, time
      signal.signal(signal.SIGCHLD, signal.SIG_IGN)
      def spread():
          while True:
              if os.fork() == 0:
                  end = time.monotonic() + 0.02
                  while time.monotonic() < end: pass
                  os._exit(0)
              time.sleep(0.018)
      threading.Thread(target=spread, daemon=True).start()
      while True:
          try: search("a")
          except BaseException: pass
    `,
    needsProcesses,
  ],
] as const

/** Options of runs whose deadline may move. */
const WAITING = { tools: [SEARCH], timeout_sec: TIMEOUT_SEC, max_tool_wait_sec: 60 }
