import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { errnoOf } from '../../errors/index.ts'

/** Maximum number of records that are read; a kernel keeps a few thousand. */
const MAX_RECORDS = 50_000

/**
 * True if the log of this kernel reports an OOM kill in the control group of a container. False also
 * if the log cannot be read, or the daemon runs on another machine.
 */
export async function hasOomKill(containerId: string, path = '/dev/kmsg'): Promise<boolean> {
  const log = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined)
  if (log === undefined) return false
  const record = Buffer.alloc(8192)
  try {
    for (let n = 0; n < MAX_RECORDS; n += 1) {
      const bytes = await readRecord(log, record)
      if (bytes === undefined) return false
      const text = record.toString('latin1', 0, bytes)
      if (text.includes('oom_memcg=') && text.includes(containerId)) return true
    }
    return false
  } finally {
    await log.close()
  }
}

/** Reads the next record. Resolves to its length, or undefined at the end of the log. */
async function readRecord(log: FileHandle, into: Buffer): Promise<number | undefined> {
  try {
    const { bytesRead } = await log.read(into, 0, into.length)
    return bytesRead === 0 ? undefined : bytesRead
  } catch (error) {
    // Records were overwritten before they were read: the log continues with the oldest one left.
    return errnoOf(error) === 'EPIPE' ? 0 : undefined
  }
}
