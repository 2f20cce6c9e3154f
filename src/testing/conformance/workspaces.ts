import assert from 'node:assert/strict'
import type { SandboxReport } from '../../sandbox/index.ts'
import type { Sandglass } from '../../sandglass.ts'
import { defineTool } from '../../tools/index.ts'
import type { Fixture } from './fixture.ts'

type Workspace = Awaited<ReturnType<Sandglass['workspace']>>

const needsWorkspaces = ({ capabilities }: SandboxReport): string | undefined =>
  capabilities.workspaces === true ? undefined : 'it has no workspaces'

/** Tests sandboxes that last until they are closed. An ability that `report()` lacks must be refused with its error code. */
export function registerWorkspaceTests(at: Fixture): void {
  const inWorkspace = async (use: (ws: Workspace, report: SandboxReport) => Promise<void>): Promise<void> => {
    await using ws = await (await at.sandglass()).workspace()
    await use(ws, await at.report())
  }

  at.test(
    'files of a script stay for the next one, and its variables and modules do not',
    ['broker', 'engine'],
    () =>
      inWorkspace(async (ws) => {
        const first = 'import json, sys\nleft = json.left = 1\nopen("left.txt", "w").write("kept")\nemit_result(1)'
        assert.equal((await ws.run(first)).finalData, 1)
        const second = 'import json\nemit_result([open("left.txt").read(), "left" in globals(), hasattr(json, "left")])'
        assert.deepEqual((await ws.run(second)).finalData, ['kept', false, false])
      }),
    needsWorkspaces,
  )

  at.test(
    'files go in and out as they are, and no path leads out',
    ['broker', 'channel'],
    () =>
      inWorkspace(async (ws) => {
        const large = Buffer.alloc(700_000, Buffer.from([0, 10, 13, 255, 7]))
        await ws.put({ 'in/large': large, 'in/empty': '', 'in/tool': { content: '#!/bin/sh\n', mode: 0o755 } })
        assert.deepEqual(Buffer.from(await ws.get('in/large')), large)
        assert.deepEqual(
          (await Array.fromAsync(ws.list('in'))).map(({ path, size, mode }) => [path, size, mode]),
          [
            ['empty', 0, 0o644],
            ['large', 700_000, 0o644],
            ['tool', 10, 0o755],
          ],
        )
        await ws.run('import os\nos.symlink("/", "out")')
        for (const path of ['../x', '/etc/passwd']) await assert.rejects(ws.get(path), { code: 'invalid_request' })
        await assert.rejects(ws.get('out/etc/passwd'), { code: 'path_refused' })
        await assert.rejects(ws.put({ 'out/x': '' }), { code: 'path_refused' })
        await ws.remove('in', { recursive: true })
        await assert.rejects(ws.stat('in/large'), { code: 'path_not_found' })
      }),
    needsWorkspaces,
  )

  at.test(
    'a program ends with a value, or is refused where the report has none',
    ['broker', 'kernel'],
    () =>
      inWorkspace(async (ws, { capabilities }) => {
        const running = ws.exec('sh', ['-c', 'cat; echo bad >&2; exit 3'], { stdin: 'given' })
        if (capabilities.programs !== true) return assert.rejects(running, { code: 'activity_unavailable' })
        const { exitCode, stdout, stderr } = await running
        assert.deepEqual([exitCode, stdout, stderr], [3, 'given', 'bad\n'])
        const late = await ws.exec('sh', ['-c', 'setsid sleep 1000 & exec sleep 1000'], { timeoutSec: 0.3 })
        assert.deepEqual([late.timedOut, late.signal], [true, 'SIGKILL'])
        const count = await ws.exec('sh', ['-c', 'grep -al "sleep.100[0]" /proc/[0-9]*/cmdline'])
        assert.equal(count.stdout, '')
      }),
    needsWorkspaces,
  )

  at.test(
    'a script runs beside a program and connects to it, or both are refused where activities run alone',
    ['broker', 'kernel'],
    () =>
      inWorkspace(async (ws, { capabilities }) => {
        if (capabilities.concurrentActivities !== true) {
          await assert.rejects(ws.start('cat'), { code: 'activity_unavailable' })
          assert.throws(() => ws.dial(8000), { code: 'activity_unavailable' })
          // While the script waits for its tool, the workspace is busy for certain.
          const meet = defineTool({
            name: 'meet',
            description: 'Uses the workspace.',
            input: { type: 'object' },
            execute: () =>
              Promise.all(
                [ws.run('pass'), ws.stat('begun')].map((refused) =>
                  refused.then(
                    () => 'served',
                    ({ code }: { code: string }) => code,
                  ),
                ),
              ),
          })
          const { finalData } = await ws.run('open("begun", "w").close()\nemit_result(meet())', { tools: [meet] })
          assert.deepEqual(finalData, ['sandbox_busy', 'sandbox_busy'])
          return
        }
        const serve =
          'import socket\ns = socket.create_server(("127.0.0.1", 0))\nprint(s.getsockname()[1], flush=True)\n' +
          'while True:\n    c, _ = s.accept()\n    c.sendall(c.recv(100).upper())\n    c.close()'
        await using server = await ws.start('python3', ['-c', serve])
        const port = Number((await server.poll({ waitMs: 10_000 })).text)
        const script = `import socket\nc = socket.create_connection(("127.0.0.1", ${port}))\nc.sendall(b"script")\nemit_result(c.recv(100).decode())`
        assert.equal((await ws.run(script)).finalData, 'SCRIPT')
        const connection = ws.dial(port)
        connection.end('host')
        assert.equal(Buffer.concat(await connection.toArray()).toString(), 'HOST')
        assert.equal(server.status, 'running')
      }),
    needsWorkspaces,
  )

  at.test(
    'a workspace that is closed serves nothing any more',
    ['engine'],
    async () => {
      const ws = await (await at.sandglass()).workspace({ files: { a: 'x' } })
      const endless = assert.rejects(ws.run('while True: pass', { limits: { executionTimeoutSec: 60 } }))
      await Promise.all([ws.close(), endless])
      for (const call of [() => ws.get('a'), () => ws.run('pass')])
        await assert.rejects(call, { code: 'workspace_closed' })
    },
    needsWorkspaces,
  )
}
