// Installs packages; prints each progress as `phase BYTES`, then the key of their environment: install-host.main.ts CACHE INDEX PACKAGE…
import { Environments, parseRequirements } from '../../../src/environments/index.ts'

const [cacheDir = '', index = '', ...packages] = process.argv.slice(2)
const environments = new Environments({ cacheDir, index })
const { environment } = await environments.prepare({
  requirements: parseRequirements(packages),
  onProgress: ({ phase, bytes }) => console.log(`${phase} ${bytes}`),
  target: { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: 'glibc 2.36' },
})
console.log(environment.key)
environments.close()
