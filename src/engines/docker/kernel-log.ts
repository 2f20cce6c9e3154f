import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { errnoOf } from '../../errors/index.ts'

/** Records that are looked through at most; a kernel keeps some thousand. */
const MAX_RECORDS = 50_000

/**
 * Whether the kernel of this machine wrote that it killed something for memory in the control group of a container. False
 * also where its log is not for us to read, or the daemon runs on another machine.
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

/** How long the next record is; undefined at the end of the log. */
async function nextRecord(log: FileHandle, into: Buffer): Promise<number | undefined> {
  try {
    const { bytesRead } = await log.read(into, 0, into.length)
    return bytesRead === 0 ? undefined : bytesRead
  } catch (error) {
    // Records were overwritten meanwhile: the log goes on with the oldest that is there.
    return errnoOf(error) === 'EPIPE' ? 0 : undefined
  }
}
