import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { openDirectory } from '../../../test/support/state-directory.ts'
import { type Patch, patched } from './mutation.ts'

/** The root of this tree. */
export const ROOT: string = resolve(import.meta.dirname, '../../..')

/** Files and directories that the tests need. */
const NEEDED = ['src', 'data', 'harness', 'test', 'campaigns', 'package.json', 'tsconfig.json', 'vitest.config.ts']

/** Prefix of the directory names, before the pid of the process that made them. */
const KIND = 'mutation'

/** A copy of the tree in a directory that the uids of sandboxes can enter. */
export interface Copy extends Disposable {
  readonly root: string
  /** A private state directory for the mutated host. */
  readonly state: string
}

/** Copies the tree. First it removes copies whose makers were killed. */
export function copyTree(): Copy {
  removeAbandoned()
  const directory = openDirectory(`${KIND}-${process.pid}`)
  const root = join(directory, 'tree')
  const state = join(directory, 'state')
  const remove = (): void => rmSync(directory, { recursive: true, force: true })
  try {
    for (const name of NEEDED) {
      cpSync(join(ROOT, name), join(root, name), {
        recursive: true,
        filter: (path) => basename(path) !== '__pycache__',
      })
    }
    symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
    chmodSync(root, 0o755)
  } catch (error) {
    remove()
    throw error
  }
  return { root, state, [Symbol.dispose]: remove }
}

/**
 * Patches a copy until the result is disposed of.
 * @throws Error for a patch that does not apply; the copy is unchanged then.
 */
export function patchCopy({ root }: Copy, patches: readonly Patch[]): Disposable {
  const before = new Map<string, string>()
  const restore = (): void => {
    for (const [path, text] of before) writeFileSync(path, text)
  }
  try {
    for (const patch of patches) {
      const path = join(root, patch.file)
      const text = readFileSync(path, 'utf8')
      writeFileSync(path, patched(text, patch))
      if (!before.has(path)) before.set(path, text)
    }
  } catch (error) {
    restore()
    throw error
  }
  return { [Symbol.dispose]: restore }
}

function removeAbandoned(): void {
  for (const name of readdirSync('/tmp')) {
    const pid = new RegExp(String.raw`^sandglass-${KIND}-(\d+)-`).exec(name)?.[1]
    // The maker is gone when /proc has no such pid. A reused pid keeps its directory until a later call.
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) rmSync(join('/tmp', name), { recursive: true, force: true })
  }
}
