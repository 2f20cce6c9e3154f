import { closeSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { errnoOf, messageOf } from '../errors/index.ts'
import type { Batch, SmallFile, WriteResult } from './small-files.ts'

/* The program of the thread that writes small files. A system call takes less time here than a turn of the host's event loop. */
parentPort?.on('message', ({ files, bytes }: Batch) => parentPort?.postMessage(writeAll(files, bytes)))
parentPort?.postMessage('ready')

/** Writes the files in order, up to the first that fails. */
function writeAll(files: readonly SmallFile[], bytes: Uint8Array): WriteResult {
  let start = 0
  for (const [index, file] of files.entries()) {
    try {
      write(file, bytes.subarray(start, start + file.size))
    } catch (error) {
      return { failed: index, message: messageOf(error), errno: errnoOf(error) }
    }
    start += file.size
  }
  return {}
}

function write({ temporaryPath, finalPath, permissions }: SmallFile, bytes: Uint8Array): void {
  const fd = openSync(temporaryPath, 'wx', permissions)
  try {
    try {
      for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at)
    } finally {
      closeSync(fd)
    }
    if (temporaryPath !== finalPath) renameSync(temporaryPath, finalPath)
  } catch (error) {
    rmSync(temporaryPath, { force: true })
    throw error
  }
}
