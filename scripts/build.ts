/** Rebuilds `dist/` from `src/`: `npm run build`. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

// A file that was deleted in src/ would otherwise stay in the package.
rmSync(join(root, 'dist'), { recursive: true, force: true })
const tsc = spawnSync('tsc', ['-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
process.exitCode = tsc.status ?? 1

// tsc keeps the shebang of the entry, but not its executable bit.
const cli = join(root, 'dist', 'cli', 'main.js')
if (existsSync(cli)) chmodSync(cli, 0o755)
