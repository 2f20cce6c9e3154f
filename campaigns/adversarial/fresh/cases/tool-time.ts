import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import { z } from 'zod'
import { defineTool } from '../../../../src/tools/index.ts'
import { type FreshCase, LINUX } from '../fresh-case.ts'

const TIMEOUT_SEC = 1
const MAX_WAIT_SEC = 12
/** Processes are sampled at random times, so a lucky script gains some time: it uses 0.04 to 0.33 s. Without samples it uses 5 s. */
const MAX_USED_SEC = 1.5

const pause = defineTool({
  name: 'pause',
  description: 'Waits for 100 ms.',
  input: z.object({}),
  execute: () => setTimeout(100),
})

/** Attacks on the deadline, which moves by the time in which tools execute. */
export const TOOL_TIME: readonly FreshCase[] = [
  {
    id: 'TIME-01',
    claim: 'a script that continues meanwhile gains none',
    claimIn: 'docs/tools.md',
    title: 'computes in unreaped child processes that live between two reports of the host',
    engines: LINUX,
    options: { tools: [pause], limits: { executionTimeoutSec: TIMEOUT_SEC, maxToolWaitSec: MAX_WAIT_SEC } },
    script: String.raw`
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
here, there = os.pipe()
os.set_blocking(here, False)
used = 0
while True:
    if os.fork() == 0:
        time.sleep(0.02)  # the host reports a call after 10 ms, and its end after 100 ms
        end = time.monotonic() + 0.05
        while time.monotonic() < end: pass
        os.write(there, struct.pack("d", time.process_time()))
        os._exit(0)
    pause()
    try:
        used += sum(one for one, in struct.iter_unpack("d", os.read(here, 4096)))
    except BlockingIOError:
        pass
    print(used)
`,
    expected: { status: 'timed-out', data: null, mayWarn: ['tool_calls_unanswered'] },
    host: ({ first }) => {
      const used = Number(first.result?.stdout.trim().split('\n').at(-1))
      assert.ok(used < MAX_USED_SEC, `it used the processor for ${used} s of ${TIMEOUT_SEC}`)
    },
  },
]
