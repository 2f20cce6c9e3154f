// Installs packages and prints the key of their environment: install-host.main.ts CACHE INDEX PACKAGE…
import { Environments, parseRequirements } from '../../../src/environments/index.ts'

const [cacheDir = '', index = '', ...packages] = process.argv.slice(2)
const environments = new Environments({ cacheDir, index })
const { environment } = await environments.prepare({
  requirements: parseRequirements(packages),
  target: { python: '3.12.4', abi: 'cpython-312-x86_64-linux-gnu', libc: 'glibc 2.36' },
})
console.log(environment.key)
environments.close()
