import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FakeWorkspace, type HostSaid } from '../../support/fake-workspace.ts'
import { packOf } from '../../support/many-files.ts'

let host: string
beforeEach(() => {
  host = mkdtempSync(join(tmpdir(), 'sandglass-hostile-'))
})
afterEach(() => rmSync(host, { recursive: true, force: true }))

interface FakeFile {
  readonly path: string
  readonly content?: string
  readonly size?: number
  readonly kind?: string
}

/** A sandbox that lists these files and sends those, whatever it is asked for. */
function lying(listed: readonly FakeFile[], sent: readonly FakeFile[] = listed): FakeWorkspace {
  const fake = new FakeWorkspace()
  fake.answer = ({ type, execution_id: id }: HostSaid) => {
    if (type === 'file_list') {
      const entries = listed.map(({ path, content = '', size = content.length, kind = 'file' }) => ({
        path,
        kind,
        size,
        mode: 0o644,
        mtime_ms: 0,
      }))
      fake.frames({ type: 'entries', execution_id: id, entries })
      fake.done(id, { ending: null, result: { skipped: 0, limits_hit: [] } })
    }
    if (type === 'files_read') {
      for (const { path, content = '' } of sent) fake.output(id, 'file', packOf(path, content))
      fake.done(id, { ending: null })
    }
    if (type === 'cancel') fake.done(id, { ending: null, error: { code: 'cancelled', message: 'x' } })
  }
  return fake
}

test('WS-04: names that lead outside are never saved', async () => {
  for (const path of ['../x', '/tmp/x', 'a/../../x', 'a//x', '.', '', 'a\0b']) {
    const { ws } = lying([{ path, content: 'x' }])
    await expect(ws.save('**', join(host, 'in'))).rejects.toMatchObject({ code: 'workspace_io' })
    await ws.close()
  }
  expect(readdirSync(host)).toEqual([])
})

test('FS-030 names that climb, a link in the place of a directory and a size of a tebibyte leave the host as it was', async () => {
  const [canary, into] = [join(host, 'canary'), join(host, 'in')]
  mkdirSync(canary)
  const climbing = lying([{ path: '../../../../canary/x', content: 'x' }])
  await expect(climbing.ws.save('**', into)).rejects.toMatchObject({ code: 'workspace_io' })
  const huge = lying([{ path: 'huge', size: 2 ** 40 }])
  await expect(huge.ws.save('**', into)).rejects.toMatchObject({ code: 'too_large' })
  // The sandbox says `out` is a link and `out/evil` a file below it; on the host, `out` is a directory.
  const evil = { path: 'out/evil', content: 'x' }
  const linked = lying([{ path: 'out', kind: 'link' }, evil], [evil])
  await linked.ws.save('**', into)
  // Also where the host itself has such a link.
  rmSync(join(into, 'out'), { recursive: true })
  symlinkSync(canary, join(into, 'out'))
  await expect(linked.ws.save('**', into, { overwrite: true })).rejects.toMatchObject({ code: 'path_refused' })
  expect(readdirSync(canary)).toEqual([])
  await Promise.all([climbing, huge, linked].map(({ ws }) => ws.close()))
})

test('files that were not asked for, or in another order, are not taken', async () => {
  const listed = [
    { path: 'a', content: 'a' },
    { path: 'b', content: 'b' },
  ]
  for (const sent of [listed.toReversed(), [{ path: '../a' }], [listed[0] as FakeFile], [...listed, { path: 'c' }]]) {
    const { ws } = lying(listed, sent)
    await expect(ws.save('**', join(host, 'in'), { overwrite: true })).rejects.toMatchObject({ code: 'workspace_io' })
    await ws.close()
  }
  expect(existsSync(join(host, 'c'))).toBe(false)
})

test('sizes that were not announced are held to the limits, and nothing half stays', async () => {
  const { ws } = lying([{ path: 'a', size: 1 }], [{ path: 'a', content: 'x'.repeat(2000) }])
  await expect(ws.save('**', host, { maxFileBytes: 1000 })).rejects.toMatchObject({ code: 'too_large' })
  expect(readdirSync(host)).toEqual([])
  const [file] = await Array.fromAsync(ws.collect('**'))
  await expect(file?.bytes()).rejects.toMatchObject({ code: 'too_large' })
  await ws.close()
})

test('too many files, and files that are too large together, are refused before anything is saved', async () => {
  const many = lying(Array.from({ length: 101 }, (_, index) => ({ path: `f${index}` })))
  await expect(many.ws.save('**', host)).rejects.toMatchObject({ code: 'too_large' })
  const large = lying(Array.from({ length: 3 }, (_, index) => ({ path: `f${index}`, size: 400 })))
  await expect(large.ws.save('**', host, { maxTotalBytes: 1000 })).rejects.toMatchObject({ code: 'too_large' })
  expect(readdirSync(host)).toEqual([])
  await Promise.all([many.ws.close(), large.ws.close()])
})

test('names that a file system may take for one are refused, also as directories and as composed letters', async () => {
  for (const [one, two] of [
    ['readme', 'README'],
    ['Dir/a', 'dir/b'],
    ['caf\u00e9', 'cafe\u0301'],
  ]) {
    const { ws } = lying([{ path: one ?? '' }, { path: two ?? '' }])
    await expect(ws.save('**', join(host, 'in'))).rejects.toMatchObject({ code: 'path_refused' })
    await ws.close()
  }
})

test('what is no file is not collected, and a file twice is one', async () => {
  const { ws } = lying([
    { path: 'a' },
    { path: 'a' },
    { path: 'link', kind: 'link' },
    { path: 'fifo', kind: 'other' },
    { path: 'dir', kind: 'directory' },
  ])
  expect((await Array.fromAsync(ws.collect('**'))).map(({ path }) => path)).toEqual(['a'])
  await ws.close()
})
