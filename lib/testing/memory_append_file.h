// An AppendFile in memory with the contract of the real one, and the faults of real disks: full,
// torn by a crash, a sync that fails. Several objects may share one disk, from any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "lib/io/append_file.h"

namespace norma::testing {

struct MemoryDisk {
  std::mutex mutex;   // guards everything below, and is the file's lock
  std::string bytes;  // the file
  uint64_t synced_bytes = 0;
  int appends = 0, syncs = 0;

  // Faults. The disk is full: a write that would grow the file beyond this is short, cut off again
  // and reported.
  std::optional<uint64_t> bytes_max;
  // The process dies in the middle of a write: the file keeps exactly this many bytes.
  std::optional<uint64_t> crash_at;
  bool fail_sync = false;
  bool fail_lock = false;  // another process never lets go of it
};

class MemoryAppendFile : public AppendFile {
 public:
  explicit MemoryAppendFile(std::shared_ptr<MemoryDisk> disk) : disk_(std::move(disk)) {}

  Status Append(const std::function<Result<std::string>(const FileTail&)>& make_line) override {
    if (Locked()) return Error{Code::kIo, "the file is locked for 10 s by somebody else"};
    std::lock_guard lock(disk_->mutex);
    std::string& bytes = disk_->bytes;
    const FileTail tail = TailOf(bytes);
    auto line = make_line(tail);
    if (!line.ok()) return line.error();
    bytes.resize(tail.size);
    const std::string whole = line.value() + "\n";
    if (disk_->crash_at.has_value() && bytes.size() + whole.size() > *disk_->crash_at) {
      bytes.append(whole, 0, *disk_->crash_at - std::min<uint64_t>(*disk_->crash_at, bytes.size()));
      return Error{Code::kIo, "crashed"};
    }
    if (disk_->bytes_max.has_value() && bytes.size() + whole.size() > *disk_->bytes_max) {
      return Error{Code::kIo, "No space left on device"};
    }
    bytes += whole;
    ++disk_->appends;
    return {};
  }

  Status Sync() override {
    std::lock_guard lock(disk_->mutex);
    if (disk_->fail_sync) return Error{Code::kIo, "Input/output error"};
    disk_->synced_bytes = disk_->bytes.size();
    ++disk_->syncs;
    return {};
  }

  std::pair<uint64_t, uint64_t> Identity() const override { return {1, 1}; }

  static FileTail TailOf(const std::string& bytes) {
    FileTail tail;
    const size_t newline = bytes.rfind('\n');
    tail.size = newline == std::string::npos ? 0 : newline + 1;
    tail.torn_bytes = bytes.size() - tail.size;
    if (tail.size > 0) {
      const size_t before = newline == 0 ? std::string::npos : bytes.rfind('\n', newline - 1);
      const size_t begin = before == std::string::npos ? 0 : before + 1;
      tail.last_line = bytes.substr(begin, newline - begin);
    }
    return tail;
  }

 private:
  bool Locked() {
    std::lock_guard lock(disk_->mutex);
    return disk_->fail_lock;
  }

  std::shared_ptr<MemoryDisk> disk_;
};

}  // namespace norma::testing
