import { expect, test } from 'vitest'
import { requirePrivateDaemon, startDaemon } from '../docker-daemon.ts'
import { summarizeStacks, whyStuck } from './daemon-stacks.ts'

const { skip } = requirePrivateDaemon()

test.skipIf(skip)(
  'of a daemon that answers there is nothing to tell; of a stopped one, that it writes nothing',
  async () => {
    await using daemon = await startDaemon()
    expect(await whyStuck(daemon)).toBeUndefined()
    process.kill(daemon.pid, 'SIGSTOP')
    try {
      expect(await whyStuck(daemon)).toMatch(/does not tell about itself .*\nIts goroutines:\nit wrote none/)
    } finally {
      process.kill(daemon.pid, 'SIGCONT')
    }
  },
  90_000,
)

test('stacks that are the same but for their arguments are counted as one, those that wait for longest come first', () => {
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
