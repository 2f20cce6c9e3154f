import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The Nodes that users have; npm carries each as a package of its own, without an install script. */
const NODES = ['22', '24'] as const

/** Installs the tarball as a user would and runs README's example from it, on every Node that is supported. */
export function runsInstalled(tarball: string, folder: string): boolean {
  return NODES.every((version) => {
    const place = join(folder, `node-${version}`)
    const node = `node-linux-${process.arch}`
    mkdirSync(place)
    writeFileSync(join(place, 'package.json'), '{"private":true,"type":"module"}')
    const { example, output } = readmeExample()
    writeFileSync(join(place, 'example.mjs'), version === '22' ? withoutAwaitUsing(example) : example)
    const installed = spawnSync(
      'npm',
      ['install', '--silent', '--no-audit', '--no-fund', tarball, `${node}@${version}`],
      {
        cwd: place,
        stdio: ['ignore', 'inherit', 'inherit'],
      },
    )
    if (installed.status !== 0)
      return told(`npm install of the tarball beside Node ${version} ended with ${installed.status}`)
    const ran = spawnSync(join(place, 'node_modules', node, 'bin', 'node'), ['example.mjs'], {
      cwd: place,
      encoding: 'utf8',
    })
    if (ran.stdout !== output)
      return told(`on Node ${version} README's example printed\n${ran.stdout}${ran.stderr}and not\n${output}`)
    console.log(`README's example runs from the tarball on Node ${version}`)
    return true
  })
}

function readmeExample(): { example: string; output: string } {
  const readme = readFileSync('README.md', 'utf8')
  const [, example = '', output = ''] = /## Use it\n+```ts\n(.*?)```\n+prints\n+```text\n(.*?)```/s.exec(readme) ?? []
  return { example, output }
}

/** Node 22 runs what TypeScript makes of `await using`, but not the words themselves. */
function withoutAwaitUsing(example: string): string {
  return `${example.replace('await using sg', 'const sg')}await sg.close()\n`
}

function told(problem: string): false {
  console.error(`package: ${problem}`)
  return false
}
