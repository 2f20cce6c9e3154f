import { FakeWorkspace, type HostSaid } from './fake-workspace.ts'

/** Entries in one frame. */
const ENTRIES = 100

/** A workspace of the test that holds these files: it lists all of them, and sends those that it is asked for. */
export function workspaceWith(files: ReadonlyMap<string, string>): FakeWorkspace {
  const fake = new FakeWorkspace()
  fake.answer = ({ type, execution_id: id, paths }: HostSaid) => {
    if (type === 'file_list') {
      const entries = [...files].map(([path, { length: size }]) => ({
        path,
        kind: 'file',
        size,
        mode: 0o644,
        mtime_ms: 0,
      }))
      for (let at = 0; at < entries.length; at += ENTRIES)
        fake.frames({ type: 'entries', execution_id: id, entries: entries.slice(at, at + ENTRIES) })
      fake.done(id, { ending: null, result: { skipped: 0, limits_hit: [] } })
    }
    if (type === 'files_read') {
      for (const path of paths as readonly string[]) fake.output(id, 'file', packOf(path, files.get(path) ?? ''))
      fake.done(id, { ending: null })
    }
    if (type === 'cancel') fake.done(id, { ending: null, error: { code: 'cancelled', message: 'x' } })
  }
  return fake
}

/** A file of ASCII text in a pack. */
export function packOf(path: string, content: string): Buffer {
  const header = Buffer.from(JSON.stringify({ path, mode: 0o644, size: content.length, mtime_ms: 0 }))
  const parts = [header, ...(content === '' ? [] : [Buffer.from(content)])]
  return Buffer.concat([...parts.flatMap((part) => [lengthOf(part.length), part]), lengthOf(0)])
}

function lengthOf(length: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  return bytes
}
