package main

const help = `azure-stream: Azure in CoreOS stream metadata, and disks that Azure takes.

  azure-stream add      put an image build into a stream document
  azure-stream lookup   find an image in a stream document
  azure-stream verify   say what is wrong with a document, or with a VHD
  azure-stream schema   print the JSON Schema of a stream document
  azure-stream version

azure-stream COMMAND --help says more. Exit status: 0 done, or nothing is
wrong; 1 something is wrong, not there, or could not be read or written;
2 wrong usage.
`

const addHelp = `azure-stream add --meta meta.json [--stream stream.json] [--base-url URL] [--no-signatures]

Puts the Azure images of a coreos-assembler build into a stream document: the
files under architectures.ARCH.artifacts.azure and .azurestack, the uploaded
blob under rhel-coreos-extensions.azure-disk. Everything else in the document
stays as it is, byte for byte.

  --meta FILE       the meta.json of the build; - is standard input
  --stream FILE     the document, which is changed in place: written anew
                    beside itself and renamed, with mode and owner kept. A
                    link is followed. Without it a new document is printed.
  --base-url URL    the https folder that the build's files are downloaded
                    from; FILE of meta.json is then at URL/FILE. Without it
                    no location is written.
  --no-signatures   there is no FILE.sig beside FILE

Files may have 16 MiB. Notes go to standard error. Exit status: 0 done;
1 not done, and the document is as it was; 2 wrong usage.
`

const lookupHelp = `azure-stream lookup [--arch ARCH] [--kind KIND] [--platform PLATFORM] [--json] stream.json

Prints how to get at an image for Azure, best first; - is standard input.

  --arch ARCH          x86_64, aarch64, ...; without it, this machine's
  --kind KIND          disk: a blob that boots as it is; marketplace: an image
                       in Azure, as publisher:offer:sku:version; vhd: a file
                       to download. Without it, the first of these there is.
  --platform PLATFORM  azure, or azurestack, which has vhd only
  --json               an array of objects

The schema is "published", or "draft" for what was tried before it:
architectures.A.azure.url, architectures.A.rhcos-VERSION-private.azure.url and
architectures.A.images.azure.image. Exit status: 0 found; 1 not there, and
what is there instead is named; 2 wrong usage.
`

const verifyHelp = `azure-stream verify stream.json
azure-stream verify --vhd FILE [--arch ARCH] [stream.json]

Without --vhd: is the document as the schema wants it (azure-stream schema),
and do its releases, locations and digests for Azure agree?

  --vhd FILE   will Azure take this disk? It has to be a fixed VHD: cookie,
               version, data offset, disk type and checksum of the footer
               right; the current size a multiple of 1 MiB and all of the file
               but the footer; the file between 20 MiB and 32767 GiB, plus 512
               bytes, the limits of an upload to a managed disk. What is wrong
               is named with its offset, and with the command that mends it.
               With stream.json, the file's SHA-256 has to be in it; of a file
               that ends in .xz or .gz only that is looked at.
  --arch ARCH  take only this architecture's digests

Page blobs (8 TiB) and OS disks (4095 GiB) have limits of their own, which are
not looked at. Exit status: 0 nothing is wrong; 1 something is, or cannot be
read; 2 wrong usage.
`

const schemaHelp = `azure-stream schema

Prints the JSON Schema (draft 2020-12) of a stream document.
`

const versionHelp = `azure-stream version

Prints the version.
`
