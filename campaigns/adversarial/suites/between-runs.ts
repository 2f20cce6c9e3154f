import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Sandglass } from '../../../src/index.ts'
import { leastOf } from '../../../src/testing/conformance/least-of.ts'
import type { EngineUnderTest } from '../driver/engine.ts'
import type { TestedEngine } from '../engines/tested.ts'

/* A script must not affect the clocks of its run or the next run. The checker is off. */

/** `rounds`: number of lost zygotes. Each costs a sandbox, and only local replaces it quickly. */
export async function betweenRuns(
  tested: TestedEngine,
  { rounds = 25 }: { readonly rounds?: number } = {},
): Promise<void> {
  const { skip, open } = await tested.ready()
  describe.skipIf(skip)(`a script between two runs on the ${tested.name} engine`, () => {
    let engine: EngineUnderTest
    let sg: Sandglass

    beforeAll(async () => {
      engine = open()
      sg = await engine.open({ poolSize: 1, maxOverflow: 0 })
    })
    afterAll(async () => {
      await sg.close()
      await engine.close()
    })

    test('that kills the zygote as it ends does not affect the next run', async () => {
      for (let n = 0; n < rounds / 2; n += 1) {
        const attack = await sg.run('import os\nemit_result(1)\nos.kill(os.getppid(), 9)\nos._exit(0)')
        expect(attack.finalData).toBe(1)
        const next = await sg.run('emit_result(2)')
        expect(next).toMatchObject({ status: 'completed', finalData: 2, error: null })
        expect(next.sandbox.id).not.toBe(attack.sandbox.id)
      }
    })

    test.each(['SIGKILL', 'SIGSTOP'])(
      'that ends in good order after %s to the zygote costs the next run nothing',
      async (signal) => {
        for (let n = 0; n < rounds; n += 1) {
          const attack = await sg.run(`import os, signal\nemit_result(1)\nos.kill(os.getppid(), signal.${signal})`)
          expect(attack.finalData).toBe(1)
          const next = await sg.run('emit_result(2)')
          expect(next).toMatchObject({ status: 'completed', finalData: 2, error: null })
        }
      },
      60_000,
    )

    test('that fills the frame socket with blank lines ends by the output limit, and the next run is served', async () => {
      const fill =
        'import os\nos.set_blocking(3, False)\ntry:\n    while True: os.write(3, b"\\n" * 65536)\nexcept BlockingIOError: pass'
      expect((await sg.run(fill)).status).toBe('output-limit')
      expect((await sg.run('emit_result(2)')).status).toBe('completed')
    })

    test.each([
      ['blank lines', 'b"\\n" * 65536'],
      ['lines that are no JSON', 'b"{\\n" * 32768'],
      ['frames of no known type', 'b\'{"type":"nope"}\\n\' * 4096'],
    ])('that floods the frame socket with %s is held to its output limit', async (_what, bytes) => {
      const result = await sg.run(`import os\nwhile True: os.write(3, ${bytes})`, {
        limits: { executionTimeoutSec: 5 },
      })
      expect(result.status).toBe('output-limit')
      expect(result.durationMs).toBeLessThan(6000)
    })

    test('that floods it below a limit of 1 GiB is still held to its deadline', async () => {
      const script =
        'import os, socket\nframes = socket.socket(fileno=3)\nframes.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)\n' +
        'while True: os.write(3, b\'{"type":"nope"}\\n\' * 4096)'
      const tookMs = await leastOf(3, 2000 + 500, async () => {
        const result = await sg.run(script, { limits: { executionTimeoutSec: 1, maxOutputBytes: 2 ** 30 } })
        expect(['timed-out', 'output-limit']).toContain(result.status)
        return result.durationMs
      })
      expect(tookMs).toBeLessThan(2000 + 500)
    })

    test('that queues signals at the zygote leaves neither data nor used slots', async () => {
      const first = await sg.run(
        'import os\nfor n in range(400): os.kill(os.getppid(), 40 + n % 20)\nemit_result(True)',
      )
      expect(first.finalData).toBe(true)
      const look =
        'import os\nstatus = dict(line.split(":", 1) for line in open(f"/proc/{os.getppid()}/status"))\n' +
        'emit_result([int(status["ShdPnd"], 16), int(status["SigPnd"], 16), status["SigQ"].strip().split("/")[0]])'
      expect((await sg.run(look, { sandboxId: first.sandbox.id })).finalData).toEqual([0, 0, '0'])
    })

    test('that sets flags on its stdin and on the writable roots leaves none of them', async () => {
      const setFlags =
        'import fcntl, os, struct\nfcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())\nfcntl.fcntl(0, 10, 42)\n' +
        'for path in ("/workspace", "/tmp", "/var/tmp", "/dev/shm"):\n    fd = os.open(path, os.O_RDONLY)\n' +
        '    try: fcntl.ioctl(fd, 0x40086602, struct.pack("=l", 192) + bytes(4))\n    except OSError: pass\nemit_result(fcntl.fcntl(0, 11))'
      const first = await sg.run(setFlags)
      expect(first.finalData).toBe(42)
      const look =
        'import fcntl, os, struct\nflags = []\nfor path in ("/workspace", "/tmp", "/var/tmp", "/dev/shm"):\n' +
        '    try: flags.append(struct.unpack("=l", fcntl.ioctl(os.open(path, os.O_RDONLY), 0x80086601, bytes(8))[:4])[0])\n' +
        '    except OSError: flags.append(0)\nemit_result([fcntl.fcntl(0, 11), fcntl.fcntl(0, fcntl.F_GETOWN), flags])'
      expect((await sg.run(look, { sandboxId: first.sandbox.id })).finalData).toEqual([0, 0, [0, 0, 0, 0]])
    })

    test.each([
      ['a connection, whose end the kernel lists for 60 s', TCP],
      [
        'an address without a route, which the kernel counts',
        'socket.socket(type=socket.SOCK_DGRAM).connect(("192.0.2.1", 9))',
      ],
    ])('that used the network for %s costs its sandbox, and the next run finds nothing of it', async (_what, use) => {
      const first = await sg.run(`import socket\ntry: ${use}\nexcept OSError: pass\nemit_result(True)`)
      expect(first.finalData).toBe(true)
      const { finalData, sandbox } = await sg.run(SEEN_OF_NETWORK)
      expect(finalData).toEqual({ connections: 0, packets: '0', unroutable: '0' })
      expect(sandbox.id).not.toBe(first.sandbox.id)
    })

    test('that leaves 100,000 files to search does not keep its run beyond its deadline', async () => {
      const script =
        'import os\nos.makedirs("d")\nfor i in range(100000): os.close(os.open("d/%d" % i, os.O_CREAT | os.O_WRONLY))\nemit_result(True)'
      const collect = Array.from({ length: 100 }, (_, n) => `**/none${n}*/**`)
      const tookMs = await leastOf(3, 4000 + 1000 + 500, async () => {
        const { durationMs, limitsHit } = await sg.run(script, { collect, limits: { executionTimeoutSec: 4 } })
        expect(limitsHit.filter((limit) => limit !== 'max_time')).toEqual([])
        return durationMs
      })
      expect(tookMs).toBeLessThan(4000 + 1000 + 500)
    })

    test('is given files above one piece although their mode forbids writing', async () => {
      const files = { 'in/a': { content: new Uint8Array(300_000).fill(7), mode: 0o444 } }
      const script = 'import os\nemit_result([os.path.getsize("in/a"), oct(os.stat("in/a").st_mode)])'
      expect((await sg.run(script, { files })).finalData).toEqual([300_000, '0o100444'])
    })
  })
}

const TCP =
  's = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); c.close(); s.accept()[0].close()'

const SEEN_OF_NETWORK = `import os
names = ["/proc/net/" + name for name in ("tcp", "tcp6") if os.path.exists("/proc/net/" + name)]
ip = [line.split() for line in open("/proc/net/snmp") if line.startswith("Ip:")]
loopback = next(line.split() for line in open("/proc/net/dev") if line.strip().startswith("lo:"))
emit_result({
    "connections": sum(len(open(name).readlines()) - 1 for name in names),
    "packets": loopback[2],
    "unroutable": dict(zip(*ip))["OutNoRoutes"],
})`
