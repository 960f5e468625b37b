#include <doctest/doctest.h>

#include <random>

#include "lib/base/regex.h"
#include "lib/policy/policy.h"

namespace norma {
namespace {

// Must be refused in any mode.
const std::vector<std::string> kRefused = {
    // The contract's own examples.
    "rm -rf /",
    "rm -fr / ",
    "rm -r /",
    "rm -f /",
    "rm -rfv /",
    "rm  -rf\t/",
    "rm -rf / tmp",
    ":(){ :|:& };",
    ":(){ :|:& };:",
    ": ( ) { : | : & } ; :",
    ":(){\n:|:&\n};:",
    "mkfs.ext4 /dev/sdz9",
    "mkfs.xfs  /dev/mapper/x",
    "dd if=/dev/zero of=/dev/sda",
    "dd if=/dev/zero of=/dev/sdz9",
    "dd if=/dev/zero of=/dev/nvme0n1 bs=1M",
    "dd if=/dev/zero of=/dev/hda",
    "dd bs=1M of=/dev/sdb if=image.iso",
    // The root, spelled otherwise.
    "rm -r -f /",
    "rm -R /",
    "rm -v -r /",
    "rm -rf /*",
    "rm -rf \"/\"",
    "rm -rf '/'",
    "rm -rf \"/\"*",
    "rm -rf \"/*\"",
    "rm -rf //",
    "rm -rf /.",
    "rm -rf /./",
    "rm -rf /..",
    "rm -rf /.*",
    "rm -rf -- /",
    "rm \"-rf\" /",
    "rm -rf --no-preserve-root /",
    "rm --no-preserve-root -rf /",
    "rm --recursive --force /",
    "rm --recursive /",
    "rm --rec --for /",
    "rm / -rf",
    "rm / --recursive",
    "rm -rf x /",
    "rm -rf \"my files\" /",
    "rm -rf /;ls",
    "rm -rf /&&ls",
    "rm -rf /|cat",
    "rm -rf />log",
    "rm -rf / # tidy up",
    "rm -rf \\\n/",
    "rm \\\n  -rf \\\n  /",
    "/bin/rm -rf /",
    "\\rm -rf /",
    "busybox rm -rf /",
    // The same acts behind something.
    "sh -c 'rm -rf /'",
    "bash -c \"rm -rf /\"",
    "echo $(rm -rf /)",
    "echo `rm -rf /`",
    "(rm -rf /)",
    "{ rm -rf /; }",
    "true;rm -rf /",
    "! rm -rf /",
    "if true; then rm -rf /; fi",
    "env X=1 nice rm -rf /",
    "xargs rm -rf /",
    "cat <<EOF | sh\nrm -rf /\nEOF",
    // Bombs under another name.
    "bomb(){ bomb|bomb& };bomb",
    "bomb() { bomb | bomb & }; bomb",
    "function b { b|b& }; b",
    ":(){ :|&:& };:",
    "a(){ b|c& }; :(){ :|:& };:",
    // File systems and disks.
    "mkfs -t ext4 /dev/sda1",
    "mkfs.ext4 -F -L data /dev/sda1",
    "mkfs.ext4 \"/dev/sda1\"",
    "/sbin/mkfs.vfat /dev/sdb",
    "mke2fs -j /dev/sda1",
    "dd if=x of=/dev/vda",
    "dd if=x of=/dev/xvda",
    "dd if=x of=/dev/mmcblk0",
    "dd if=x of=\"/dev/sda\"",
    "dd if=x of=/dev/disk/by-id/ata-1",
    "dd if=x of=/dev/mapper/root",
    "dd if=x of=/dev/dm-0",
    "dd if=x of=/dev/md0",
    "dd if=x \\\n  of=/dev/sda",
    "cat image > /dev/sda",
    "cat image >/dev/nvme0n1",
    "cat image >>/dev/vda",
    "cat image >| /dev/sdb",
    ">/dev/sda",
};

// Must be left to the rules: a floor that gets in the way of work is switched off.
const std::vector<std::string> kLeftAlone = {
    "",
    " ",
    "ls -la /",
    "rm -rf /srv/x",
    "rm -rf /tmp/x",
    "rm -rf /tmp",
    "rm -rf /tmp /var/tmp/x",
    "rm -rf ./x",
    "rm -rf ./",
    "rm -rf .",
    "rm -rf build/",
    "rm -rf build/*",
    "rm -rf \"$dir\"/*",
    "rm -rf \"$PWD/build\"",
    "rm -rf ~/x",
    "rm -rf /*.log",
    "rm -rf /.cache",
    "rm -rf \"/tmp/a b\"",
    "rm -f a.txt && ls /",
    "rm -f a.txt; ls /",
    "rm -f a.txt | ls /",
    "rm -f a.txt\nls /",
    "rm -rf x\ndu -sh /",
    "rm -f x & cd /",
    "rm x /",
    "rm -i /",
    "rm --verbose /",
    "rm /",
    "rm",
    "echo \"rm -rf /tmp\"",
    "grep -rf / ",
    "grep -rf patterns /",
    "farm -rf x /",
    "docker run --rm -v /:/host alpine ls /",
    "docker run --rm -w / alpine true",
    "docker build --rm -f Dockerfile /",
    "alarm -f x /",
    "git rm -rf src/x",
    "find / -name x",
    "ls -R /",
    "cp -rf x /",
    "chmod -R u+r ./",
    "mkfs.ext4 disk.img",
    "mkfs.ext4 -F disk.img > /dev/null",
    "mkfs.ext4 disk.img 2>/dev/null",
    "which mkfs.ext4 && ls /dev/",
    "man mkfs.ext4",
    "cat mkfs.txt; ls /dev/sda",
    "dd if=/dev/sda of=backup.img",
    "dd if=/dev/urandom of=key bs=32 count=1",
    "dd if=/dev/zero of=/dev/null",
    "dd if=/dev/zero\necho of=/dev/sda",
    "dd if=x of=/dev/shm/x",
    "dd if=x of=/dev/stdout",
    "add of=/dev/sda",
    "echo x > /dev/null",
    "echo x > /dev/stderr",
    "echo x 2>&1 > /dev/tty",
    "echo x > /dev/shm/y",
    "cat /dev/sda",
    "git commit -m 'map -> /dev/sda, => /dev/sdb'",
    "f(){ g|h& }; f",
    "f(){ f|g& }; f",
    "f(){ ls|wc& }; f",
    "f() { f; }; f | f &",
    "x:(y) { z | z & }",
    "echo :(",
};

TEST_CASE("bash floor: what wrecks the machine is refused") {
  for (const std::string& command : kRefused) {
    CHECK_MESSAGE(!BashFloorReason(command).empty(), command);
  }
}

TEST_CASE("bash floor: it is refused behind another command, a wrapper and a newline too") {
  for (const std::string& command : kRefused) {
    for (const char* before : {"false && ", "sudo ", "ls\n", "true; ", "cd /tmp\n  "}) {
      CHECK_MESSAGE(!BashFloorReason(before + command).empty(), before, command);
    }
  }
}

TEST_CASE("bash floor: ordinary commands are left to the rules") {
  for (const std::string& command : kLeftAlone) {
    CHECK_MESSAGE(BashFloorReason(command) == "", command);
  }
}

TEST_CASE("bash floor: the reason says what the command would do") {
  const std::string tail = ". No mode and no rule allows it";
  const std::string head = "the safety floor of Bash refuses this command: ";
  CHECK(BashFloorReason("rm -rf /") == head + "it would delete the root folder" + tail);
  CHECK(BashFloorReason(":(){ :|:& };:") == head + "it is a fork bomb" + tail);
  CHECK(BashFloorReason("mkfs.ext4 /dev/sda") ==
        head + "it would make a new file system over a device" + tail);
  CHECK(BashFloorReason("dd if=x of=/dev/sda") == head + "it would overwrite a disk" + tail);
}

TEST_CASE("bash floor: bytes that are no UTF-8, NUL and length hide nothing") {
  CHECK_FALSE(BashFloorReason("echo \xFF\xFE; rm -rf /").empty());
  CHECK_FALSE(BashFloorReason(std::string("echo \0; rm -rf /", 16)).empty());
  CHECK_FALSE(BashFloorReason("echo " + std::string(1 << 20, 'x') + " && rm -rf /").empty());
  CHECK_FALSE(BashFloorReason("rm " + std::string(100'000, ' ') + "-rf /").empty());
  CHECK(BashFloorReason("rm -f " + std::string(1 << 20, 'x')).empty());
}

// The contract's four patterns alone, as spec/41 §4 states them. Whatever they refuse is refused.
bool ContractRefuses(const std::string& command) {
  static const std::vector<Regex> patterns = [] {
    std::vector<Regex> made;
    for (const char* pattern : {R"(\brm\s+-[a-zA-Z]*[rf][a-zA-Z]*\s+/(\s|$))",
                                R"(:\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;)",
                                R"(\bmkfs\.\w+\s+/dev/)", R"(\bdd\b.*\bof=/dev/(sd|nvme|hd))"}) {
      made.push_back(Regex::Compile(pattern).value());
    }
    return made;
  }();
  for (const Regex& pattern : patterns) {
    if (pattern.Matches(command)) return true;
  }
  return false;
}

TEST_CASE("bash floor: 50,000 random commands, and never fewer refused than by the contract") {
  const std::vector<std::string> pieces = {
      "rm",   " ",           " ",    " ",     "-rf", "-f",    "-r",          "/",
      "/ ",   "/tmp",        "\n",   "\t",    ";",   "&&",    "|",           "&",
      "dd",   "of=/dev/sda", "of=",  "/dev/", "sda", "nvme0", "mkfs.ext4",   "mkfs.",
      "ext4", ":",           "(",    ")",     "{",   "}",     "\"",          "'",
      "\\\n", "echo",        "sudo", "*",     ".",   "#",     ":(){ :|:& };"};
  std::mt19937 random(43);
  int contract = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string command;
    for (auto n = 1 + random() % 12; n > 0; --n) command += pieces[random() % pieces.size()];
    const std::string reason = BashFloorReason(command);
    if (!ContractRefuses(command)) continue;
    ++contract;
    REQUIRE_MESSAGE(!reason.empty(), command);
  }
  CHECK(contract > 500);
}

}  // namespace
}  // namespace norma
