import { closeSync, openSync, readSync, rmSync } from 'node:fs'

/**
 * The file to which bubblewrap writes a description of the sandbox. A pipe would break when its reader dies: that would end
 * bubblewrap, and the process that it has just made would wait for it forever.
 */
export interface InfoFile extends Disposable {
  /** The descriptor that bubblewrap inherits. */
  readonly writing: number
  /** Reads everything written so far. */
  read(): string
}

/** Opens a file and removes its name. Throws the error of the failed system call. */
export function openInfoFile(path: string): InfoFile {
  const open: number[] = []
  const close = (): void => {
    for (const fd of open.splice(0)) closeSync(fd)
  }
  try {
    const writing = openSync(path, 'wx', 0o600)
    open.push(writing)
    const reading = openSync(path, 'r')
    open.push(reading)
    const buffer = Buffer.alloc(4096)
    const read = (): string => buffer.toString('latin1', 0, readSync(reading, buffer, 0, buffer.length, 0))
    return { writing, read, [Symbol.dispose]: close }
  } catch (error) {
    close()
    throw error
  } finally {
    rmSync(path, { force: true })
  }
}
