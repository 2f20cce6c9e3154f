import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { requirePrivateDaemon, startDaemon } from '../../support/docker-daemon.ts'
import { summarizeStacks, whyStuck } from '../../support/daemon-stacks.ts'

const { skip } = requirePrivateDaemon()

test.skipIf(skip)(
  'gives nothing for a daemon that answers, and says that a stopped one writes nothing',
  async () => {
    await using daemon = await startDaemon()
    expect(await whyStuck(daemon)).toBeUndefined()
    process.kill(daemon.pid, 'SIGSTOP')
    // The signal is sent, and the daemon may still answer until the kernel has stopped each of its threads.
    const notStopped = await eventually(() => (isStopped(daemon.pid) ? undefined : 'it runs'), 10_000)
    expect(notStopped).toBeUndefined()
    try {
      const stuck = await whyStuck(daemon, { answerMs: 1000, dumpMs: 500 })
      expect(stuck).toMatch(/does not tell about itself .*\nIts goroutines:\nit wrote none/)
    } finally {
      process.kill(daemon.pid, 'SIGCONT')
    }
  },
  90_000,
)

test('counts stacks that differ only in arguments as one, the longest waiting first', () => {
  const dump = `goroutine 1 [running]:
main.run(0x1)
\t/go/main.go:1 +0x1

goroutine 7 [semacquire, 3 minutes]:
sync.runtime_Semacquire(0xc1)
\t/go/sema.go:56 +0x45
daemon.(*Daemon).kill(0xc2, 0x1)
\t/go/kill.go:9 +0x2

goroutine 8 [semacquire, 12 minutes]:
sync.runtime_Semacquire(0xc7)
\t/go/sema.go:56 +0x45
daemon.(*Daemon).kill(0xc9, 0x1)
\t/go/kill.go:9 +0x2
`
  expect(summarizeStacks(dump)).toBe(
    '2 x, up to 12 min [semacquire]\n    sync.runtime_Semacquire\n    daemon.(*Daemon).kill\n1 x, up to 0 min [running]\n    main.run',
  )
})

function isStopped(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).every((thread) =>
      / T \d/.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')),
    )
  } catch {
    return false // a thread has just ended
  }
}
