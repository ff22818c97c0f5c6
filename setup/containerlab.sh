#!/usr/bin/env bash
# containerlab.sh: install containerlab, unless it is there. No distribution has it, so the version pinned in
# containerlab/go.mod is built from source into prebuilt/ and copied to /usr/local/bin. (A symbolic link would break
# when this folder is removed.)
. "$(dirname "$0")/step.sh"
alone

readonly program="$prebuilt/containerlab" installed=/usr/local/bin/containerlab go_minimum=1.23
PATH="$PATH:/usr/local/go/bin"

# without_modules FOLDER: write the source with one change to FOLDER. Kernels without loadable modules have no list of
# modules, which makes containerlab fail; with the change, it treats a missing list as empty.
without_modules() {
    local folder=$1 published changed=utils/kernel_module.go
    published=$(go list -m -f '{{.Dir}}' github.com/srl-labs/containerlab)
    mkdir "$folder/source"
    cp -r --no-preserve=mode "$published/." "$folder/source"
    sed -E '/^func IsKernelModuleLoaded/,/^}/ s|^(\t\t)return false, err$|\1if os.IsNotExist(err) {\n\1\treturn false, nil\n\1}\n&|' \
        "$published/$changed" >"$folder/source/$changed"
    grep -q 'os.IsNotExist(err)' "$folder/source/$changed" ||
        fail "containerlab looks for modules in another way than this expects: mend without_modules in setup/containerlab.sh"
    cp go.sum "$folder"
    { cat go.mod && printf 'replace github.com/srl-labs/containerlab => %s\n' "$folder/source"; } >"$folder/go.mod"
}

if [ ! -x "$program" ]; then
    if command -v containerlab >/dev/null; then exit 0; fi
    version=$(go env GOVERSION 2>/dev/null | sed 's/^go//') || version=0
    at_least "${version:-0}" "$go_minimum" ||
        fail "containerlab is built with Go $go_minimum or newer, and none is here: install Go (https://go.dev/dl), or containerlab itself"
    say "building containerlab (Go)"
    rm -f "$state/containerlab.log"
    mkdir -p "$prebuilt" "$state"
    work=$(mktemp -d)
    trap 'rm -rf "$work"; give_back' EXIT
    cd "$root/setup/containerlab"
    pinned=$(sed -n 's|^require github.com/srl-labs/containerlab v||p' go.mod)
    logged containerlab go mod download github.com/srl-labs/containerlab
    without_modules "$work"
    logged containerlab env CGO_ENABLED=0 go build -mod=readonly -trimpath -modfile "$work/go.mod" \
        -ldflags "-s -w -X github.com/srl-labs/containerlab/cmd.version=$pinned+no-modules" \
        -o "$work/containerlab" github.com/srl-labs/containerlab
    mv "$work/containerlab" "$program.part"
    mv "$program.part" "$program" # a rename on the same disk, so the program is never incomplete
fi
if [ ! -L "$installed" ] && cmp -s "$program" "$installed"; then exit 0; fi
root_for "installing $installed"
as_root install -m 755 "$program" "$installed" # also replaces a link
