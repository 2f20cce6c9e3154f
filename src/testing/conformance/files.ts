import assert from 'node:assert/strict'
import { ExecutionMode, type ExecutionResult, ScriptExecutor } from '../../executor/index.ts'
import { FILE_CHUNK_BYTES, type HostFrame } from '../../protocol/index.ts'
import type { Fixture } from './fixture.ts'
import { python, type RunFrames } from './peer.ts'

/** Tests files by value, into the workspace and out of it. */
export function registerFileTests(at: Fixture): void {
  at.test('files are in the current directory before the script starts', ['broker'], () =>
    at.withAny(async (peer) => {
      const big = Buffer.alloc(FILE_CHUNK_BYTES + 1000, 'ü')
      const look = python`
        import hashlib, os
        emit_result([[p, oct(os.stat(p).st_mode & 0o777), hashlib.sha256(open(p, 'rb').read()).hexdigest()]
                     for p in ('a.txt', 'in/deep/big.bin', 'run.sh')])
      `
      const request = peer.request(look)
      const id = request.execution_id
      await peer.send(
        ...fileFrames(id, 'a.txt', Buffer.from('text')),
        ...fileFrames(id, 'in/deep/big.bin', big, 0o600),
        ...fileFrames(id, 'run.sh', Buffer.alloc(0), 0o755),
        request,
      )
      const { createHash } = await import('node:crypto')
      const digest = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')
      assert.deepEqual((await peer.finish(id)).result, [
        ['a.txt', '0o644', digest(Buffer.from('text'))],
        ['in/deep/big.bin', '0o600', digest(big)],
        ['run.sh', '0o755', digest(Buffer.alloc(0))],
      ])
    }),
  )

  at.test('a file whose path leads out, or is none, is refused and nothing runs', ['broker'], () =>
    at.withAny(async (peer) => {
      for (const path of ['../outside', '/etc/passwd', 'a/../../b', '', 'a//b', 'nul\0']) {
        const request = peer.request("emit_log('ran')")
        await peer.send(...fileFrames(request.execution_id, path, Buffer.from('x')), request)
        const { events, done } = await peer.finish(request.execution_id)
        assert.deepEqual(
          [events.map((event) => [event['type'], event['kind']]), done.ending?.cause, done.reusable],
          [[['error', 'request']], 'not-started', true],
          path,
        )
      }
      assert.equal((await peer.run('emit_result(1)')).result, 1)
    }),
  )

  at.test('files that were put for one run are not there in another', ['broker'], () =>
    at.withAny(async (peer) => {
      await peer.send(...fileFrames('abandoned', 'left.txt', Buffer.from('x')))
      const request = peer.request("import os\nemit_result(os.listdir('.'))")
      await peer.send(...fileFrames(request.execution_id, 'mine.txt', Buffer.from('x')), request)
      assert.deepEqual((await peer.finish(request.execution_id)).result, ['mine.txt'])
      await peer.send(...fileFrames('abandoned again', 'left.txt', Buffer.from('x')))
      assert.deepEqual((await peer.run("import os\nemit_result(os.listdir('.'))")).result, [])
    }),
  )

  at.test('files that match come back whole, in the order of their paths', ['broker', 'webassembly'], () =>
    at.withAny(async (peer) => {
      const run = await peer.run(
        python`
          import os
          os.makedirs('out/sub')
          open('out/b.bin', 'wb').write(bytes(range(256)) * 2000)
          open('out/a.txt', 'w').write('ü')
          open('out/sub/empty', 'w').close()
          open('other.txt', 'w').write('no')
          os.symlink('/etc/passwd', 'out/passwd')
          os.symlink('a.txt', 'out/link')
          os.mkfifo('out/fifo')
        `,
        { collect: ['out/**'] },
      )
      const bytes = Buffer.concat(
        Array.from({ length: 2000 }, () => Buffer.from(Array.from({ length: 256 }, (_, n) => n))),
      )
      assert.deepEqual(
        [...filesOf(run)],
        [
          ['out/a.txt', Buffer.from('ü')],
          ['out/b.bin', bytes],
          ['out/sub/empty', Buffer.alloc(0)],
        ],
      )
      assert.deepEqual([run.done.limits_hit, run.done.warnings, run.done.reusable], [[], [], true])
    }),
  )

  at.test('files come back from a run that failed, too', ['broker'], () =>
    at.withAny(async (peer) => {
      const run = await peer.run("open('log', 'w').write('so far')\n1/0", { collect: ['*'] })
      assert.deepEqual([...filesOf(run)], [['log', Buffer.from('so far')]])
      const killed = await peer.run("open('log', 'w').write('so far')\nwhile True: pass", {
        collect: ['*'],
        timeout_sec: 2,
      })
      assert.deepEqual([...filesOf(killed)], [['log', Buffer.from('so far')]])
    }),
  )

  at.test('no half of a secret is left where the path of a file is cut in a message', ['broker'], async () => {
    const MiB = 1024 * 1024
    const KEY = 'k3y-0123456789-abcdefghijklmnopqrstuvwxyz-y3k'
    const sandbox = await at.create({ limits: { diskBytes: 8 * MiB } })
    const run = (script: string, more: object): Promise<ExecutionResult> =>
      new ScriptExecutor({ mode: ExecutionMode.INTERACTIVE }).run({ sandbox, script, secrets: { KEY }, ...more })
    try {
      // A message shows the first 200 characters of an incoming path, and 250 of an outgoing one.
      const paths = [160, 180, 195, 210, 230, 245].map(
        (before) => `${'d'.repeat(before)}/${KEY}/${'e'.repeat(250)}/${'f'.repeat(150)}`,
      )
      const refused = []
      for (const path of paths)
        refused.push(JSON.stringify(await run('', { files: { [path]: new Uint8Array(9 * MiB) } })))
      const script = python`
        import os
        for path in paths:
            os.makedirs(os.path.dirname(path))
            open(path, 'wb').truncate(1001)
      `
      const left = await run(script, { inputs: { paths }, collect: ['**'], collectLimits: { maxFileBytes: 1000 } })
      const skipped = left.warnings.map(({ message }) => message)
      assert.deepEqual(
        skipped.filter((message) => !message.includes('a collected file may have')),
        [],
      )
      assert.equal(skipped.length, paths.length)
      for (const report of refused) assert.match(report, /could not be put/)
      for (const report of [...refused, JSON.stringify(left)])
        assert.ok(!report.includes('k3y-') && !report.includes('-y3k'), report)
    } finally {
      await sandbox.destroy()
    }
  })

  at.test('a run reports the caps of collecting that it hit', ['broker'], () =>
    at.withAny(async (peer) => {
      const many = await peer.run("for n in range(120): open(f'f{n:03}', 'w').close()", { collect: ['f*'] })
      assert.deepEqual([filesOf(many).size, many.done.limits_hit], [100, ['max_files']])
      const big = await peer.run("open('big', 'wb').truncate(5_000_000)\nopen('ok', 'w').close()", { collect: ['*'] })
      assert.deepEqual([[...filesOf(big).keys()], big.done.limits_hit], [['ok'], ['max_file_bytes']])
      assert.deepEqual(
        big.done.warnings.map((warning) => warning.code),
        ['collect_skipped'],
      )
    }),
  )

  at.test('a run collects what its own limits allow, more or less than the defaults', ['broker'], () =>
    at.withAny(async (peer) => {
      const script = "open('big', 'wb').truncate(5_000_000)\nfor n in range(120): open(f'f{n:03}', 'w').write('xy')"
      const more = await peer.run(script, {
        collect: ['*'],
        collect_limits: { max_files: 200, max_file_bytes: 6_000_000 },
      })
      assert.deepEqual(
        [filesOf(more).size, filesOf(more).get('big')?.length, more.done.limits_hit],
        [121, 5_000_000, []],
      )
      const few = await peer.run(script, { collect: ['*'], collect_limits: { max_files: 2 } })
      assert.deepEqual(
        [[...filesOf(few).keys()], few.done.limits_hit],
        [
          ['f000', 'f001'],
          ['max_file_bytes', 'max_files'],
        ],
      )
      const small = await peer.run(script, { collect: ['f*'], collect_limits: { max_total_bytes: 5 } })
      assert.deepEqual([filesOf(small).size, small.done.limits_hit], [2, ['max_total_bytes']])
    }),
  )
}

function fileFrames(id: string, path: string, content: Buffer, mode = 0o644): HostFrame[] {
  const frames: HostFrame[] = []
  for (let offset = 0; offset === 0 || offset < content.length; offset += FILE_CHUNK_BYTES) {
    const content_base64 = content.subarray(offset, offset + FILE_CHUNK_BYTES).toString('base64')
    frames.push({ type: 'file_put', execution_id: id, path, mode, offset, content_base64 })
  }
  return frames
}

/** The content of each path, in the order in which the files arrived. */
function filesOf(run: RunFrames): Map<string, Buffer> {
  const files = new Map<string, Buffer>()
  for (const event of run.events) {
    if (event['type'] !== 'file') continue
    const path = String(event['path'])
    const before = files.get(path) ?? Buffer.alloc(0)
    assert.equal(event['offset'], before.length, `${path}: pieces come in order`)
    files.set(path, Buffer.concat([before, Buffer.from(String(event['content_base64']), 'base64')]))
  }
  for (const event of run.events) {
    if (event['type'] === 'file') assert.equal(event['size'], files.get(String(event['path']))?.length)
  }
  return files
}
