import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')
/** The package, and what deploy/kubernetes/Dockerfile installs beside it. */
const PEERS = ['@kubernetes/client-node', 'ws']

/**
 * Makes the image of deploy/kubernetes/Dockerfile without a registry: this Node with its libraries, the package as it is built from
 * `src/`, and the server. Then `importer`, a shell command, gets it as an archive of Docker on its standard input.
 */
export function importApplicationImage(name: string, importer: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'sandglass-image-'))
  try {
    const layer = join(folder, 'layer.tar')
    const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).match(/\/\S+/g) ?? []
    add(layer, '/', '', libraries)
    add(layer, dirname(process.execPath), 'usr/local/bin/', [basename(process.execPath)])
    add(layer, join(ROOT, 'deploy/kubernetes'), 'app/', ['server.ts'])
    addPackage(layer, folder)
    add(layer, ROOT, 'app/', packages())
    writeArchive(folder, name)
    const archive = openSync(join(folder, 'image.tar'), 'r')
    const done = spawnSync('sh', ['-c', importer], { stdio: [archive, 'pipe', 'pipe'], encoding: 'utf8' })
    if (done.status !== 0) throw new Error(`${importer}: ${done.stderr}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Adds what runs, and no types or source maps, from a directory to an archive, below a prefix. */
function add(archive: string, directory: string, prefix: string, names: readonly string[]): void {
  const without = ['*.d.ts', '*.d.mts', '*.d.cts', '*.map', '__pycache__'].map((pattern) => `--exclude=${pattern}`)
  const paths = names.map((name) => name.replace(/^\//, ''))
  const transform = `--transform=flags=r;s,^,${prefix},`
  execFileSync('tar', ['-rhf', archive, '--hard-dereference', ...without, transform, '-C', directory, ...paths])
}

function addPackage(layer: string, folder: string): void {
  const own = 'app/node_modules/sandglass/'
  execFileSync('tsc', ['-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(folder, 'dist')])
  add(layer, folder, own, ['dist'])
  add(layer, ROOT, own, ['package.json', 'harness', 'data'])
}

/** The paths of all packages that the application needs. */
function packages(): readonly string[] {
  const found = new Set<string>()
  for (const name of [...Object.keys(readManifest(ROOT).dependencies), ...PEERS]) findPackage(ROOT, name, found)
  return [...found].map((directory) => relative(ROOT, directory))
}

/** Adds the directories of a package and of all that it depends on. */
function findPackage(parent: string, name: string, found: Set<string>): void {
  const directory = locate(parent, name)
  if (found.has(directory)) return
  found.add(directory)
  for (const one of Object.keys(readManifest(directory).dependencies)) findPackage(directory, one, found)
}

/** Finds a package as Node does: in the nearest `node_modules` above. */
function locate(from: string, name: string): string {
  const directory = join(from, 'node_modules', name)
  return existsSync(directory) ? directory : locate(dirname(from), name)
}

function readManifest(directory: string): { readonly dependencies: Readonly<Record<string, string>> } {
  const text = readFileSync(join(directory, 'package.json'), 'utf8')
  return { dependencies: {}, ...(JSON.parse(text) as object) }
}

/** Writes `image.tar`: one layer, as `docker save` does. */
function writeArchive(folder: string, name: string): void {
  const digest = createHash('sha256')
    .update(readFileSync(join(folder, 'layer.tar')))
    .digest('hex')
  const config = {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { User: '1000', WorkingDir: '/app', Cmd: ['node', 'server.ts'], Env: ['PATH=/usr/local/bin'] },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
  }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
  const manifest = [{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }]
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest))
  execFileSync('tar', ['-C', folder, '-cf', join(folder, 'image.tar'), 'manifest.json', 'config.json', 'layer.tar'])
}
