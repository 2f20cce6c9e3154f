import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { errnoOf } from '../../errors/index.ts'

/** The most records that are read; a kernel keeps some thousand. */
const MAX_RECORDS = 50_000

/**
 * True if the log of this kernel says that it killed a process for memory in the control group of a container. False also
 * if the log cannot be read, or the daemon runs on another machine.
 */
export async function kernelKilledForMemory(containerId: string, path = '/dev/kmsg'): Promise<boolean> {
  const log = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined)
  if (log === undefined) return false
  const record = Buffer.alloc(8192)
  try {
    for (let n = 0; n < MAX_RECORDS; n += 1) {
      const bytes = await nextRecord(log, record)
      if (bytes === undefined) return false
      const text = record.toString('latin1', 0, bytes)
      if (text.includes('oom_memcg=') && text.includes(containerId)) return true
    }
    return false
  } finally {
    await log.close()
  }
}

/** The length of the next record; undefined at the end of the log. */
async function nextRecord(log: FileHandle, into: Buffer): Promise<number | undefined> {
  try {
    const { bytesRead } = await log.read(into, 0, into.length)
    return bytesRead === 0 ? undefined : bytesRead
  } catch (error) {
    // Records were overwritten meanwhile: the log continues with the oldest one left.
    return errnoOf(error) === 'EPIPE' ? 0 : undefined
  }
}
