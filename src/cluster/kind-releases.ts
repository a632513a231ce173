// Written by scripts/update-releases: run it when kind releases.

/** A node image as a kind release names it. */
export interface NodeImageRow {
  /** The kind release that it is from. */
  readonly kind: string
  readonly kubernetes: string
  readonly digest: string
}

/** The kind release that is installed unless `kind-version` says otherwise. */
export const KIND = 'v0.33.0'

/**
 * The sha256 of that release's binaries by platform, such as linux-amd64, as their release page promises them. Where a platform is not
 * here the promise is read at each download.
 */
export const KIND_CHECKSUMS: Readonly<Record<string, string>> = {}

/**
 * The default node image of each kind release: `Image` in pkg/apis/config/defaults/image.go of the Go module
 * sigs.k8s.io/kind at that version. The newest release is first, and answers for its Kubernetes version.
 */
export const NODE_IMAGES: readonly NodeImageRow[] = [
  {
    kind: 'v0.33.0',
    kubernetes: '1.37.0',
    digest: 'sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5',
  },
  {
    kind: 'v0.32.0',
    kubernetes: '1.36.1',
    digest: 'sha256:3489c7674813ba5d8b1a9977baea8a6e553784dab7b84759d1014dbd78f7ebd5',
  },
  {
    kind: 'v0.31.0',
    kubernetes: '1.35.0',
    digest: 'sha256:452d707d4862f52530247495d180205e029056831160e22870e37e3f6c1ac31f',
  },
  {
    kind: 'v0.30.0',
    kubernetes: '1.34.0',
    digest: 'sha256:7416a61b42b1662ca6ca89f02028ac133a309a2a30ba309614e8ec94d976dc5a',
  },
  {
    kind: 'v0.29.0',
    kubernetes: '1.33.1',
    digest: 'sha256:050072256b9a903bd914c0b2866828150cb229cea0efe5892e2b644d5dd3b34f',
  },
  {
    kind: 'v0.28.0',
    kubernetes: '1.33.1',
    digest: 'sha256:8d866994839cd096b3590681c55a6fa4a071fdaf33be7b9660e5697d2ed13002',
  },
  {
    kind: 'v0.27.0',
    kubernetes: '1.32.2',
    digest: 'sha256:f226345927d7e348497136874b6d207e0b32cc52154ad8323129352923a3142f',
  },
  {
    kind: 'v0.26.0',
    kubernetes: '1.32.0',
    digest: 'sha256:c48c62eac5da28cdadcf560d1d8616cfa6783b58f0d94cf63ad1bf49600cb027',
  },
  {
    kind: 'v0.25.0',
    kubernetes: '1.31.2',
    digest: 'sha256:18fbefc20a7113353c7b75b5c869d7145a6abd6269154825872dc59c1329912e',
  },
  {
    kind: 'v0.24.0',
    kubernetes: '1.31.0',
    digest: 'sha256:53df588e04085fd41ae12de0c3fe4c72f7013bba32a20e7325357a1ac94ba865',
  },
  {
    kind: 'v0.23.0',
    kubernetes: '1.30.0',
    digest: 'sha256:047357ac0cfea04663786a612ba1eaba9702bef25227a794b52890dd8bcd692e',
  },
  {
    kind: 'v0.22.0',
    kubernetes: '1.29.2',
    digest: 'sha256:51a1434a5397193442f0be2a297b488b6c919ce8a3931be0ce822606ea5ca245',
  },
  {
    kind: 'v0.21.0',
    kubernetes: '1.29.1',
    digest: 'sha256:a0cc28af37cf39b019e2b448c54d1a3f789de32536cb5a5db61a49623e527144',
  },
  {
    kind: 'v0.20.0',
    kubernetes: '1.27.3',
    digest: 'sha256:3966ac761ae0136263ffdb6cfd4db23ef8a83cba8a463690e98317add2c9ba72',
  },
]
