import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { docker, wordsOf } from '../../../support/containers.ts'

/** Images of a test on the daemon at the default address; removed when the scope ends. */
export class TestImages implements Disposable {
  readonly #names: string[] = []

  /** An image with only these executable files. */
  of(files: Readonly<Record<string, string | Uint8Array>>): string {
    const name = this.#name()
    const root = mkdtempSync(join(tmpdir(), 'sandglass-image-'))
    try {
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(join(root, path)), { recursive: true })
        writeFileSync(join(root, path), content)
        chmodSync(join(root, path), 0o755)
      }
      const made = spawnSync('sh', ['-c', 'tar -C "$1" -cf - . | docker import - "$2"', 'sh', root, name])
      if (made.status !== 0) throw new Error(`docker import: ${String(made.stderr)}`)
      return name
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  }

  /** An image based on another, with an additional file and with changes in the form of `docker commit`. */
  from(base: string, file: { path: string; content: string } | undefined, ...changes: readonly string[]): string {
    const name = this.#name()
    const container = docker(undefined, 'create', base, '/nothing').trim()
    const place = mkdtempSync(join(tmpdir(), 'sandglass-image-'))
    try {
      if (file !== undefined) {
        writeFileSync(join(place, 'file'), file.content, { mode: 0o755 })
        docker(undefined, 'cp', join(place, 'file'), `${container}:${file.path}`)
      }
      docker(undefined, 'commit', ...changes.flatMap((change) => ['--change', change]), container, name)
      return name
    } finally {
      docker(undefined, 'rm', container)
      rmSync(place, { recursive: true, force: true })
    }
  }

  /** An image based on another, after shell commands in a container and with changes in the form of `docker commit`. */
  after(base: string, script: string, ...changes: readonly string[]): string {
    const name = this.#name()
    const flags = ['--network=none', '--entrypoint', '/bin/sh']
    const container = docker(undefined, 'create', ...flags, base, '-euc', script).trim()
    try {
      docker(undefined, 'start', '--attach', container)
      docker(undefined, 'commit', ...changes.flatMap((change) => ['--change', change]), container, name)
      return name
    } finally {
      docker(undefined, 'rm', container)
    }
  }

  [Symbol.dispose](): void {
    for (const name of this.#names) wordsOf(undefined, 'rmi', '--force', name)
  }

  #name(): string {
    this.#names.push(`sandglass-test-${process.pid}-${this.#names.length}`)
    return this.#names.at(-1) as string
  }
}
