// The output of a process with a bound on memory: its start, its end, and the whole of it in a file
// once it does not fit. Knows nothing of pipes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/io/files.h"

namespace norma {

class OutputBuffer {
 public:
  // `spill_path` is made (0600) when the output exceeds head + tail; empty: it is not kept.
  OutputBuffer(size_t head_bytes_max, size_t tail_bytes_max, std::string spill_path);

  void Add(std::string_view bytes);

  uint64_t bytes() const { return bytes_; }
  uint64_t omitted() const { return bytes_ - head_.size() - TailSize(); }
  // The file holds every byte that was added.
  bool spilled() const { return spill_.valid(); }
  std::string TakeHead() { return std::move(head_); }
  std::string Tail() const { return tail_.substr(tail_.size() - TailSize()); }

 private:
  size_t TailSize() const { return tail_.size() < tail_max_ ? tail_.size() : tail_max_; }
  void Spill(std::string_view bytes);

  size_t head_max_;
  size_t tail_max_;
  std::string spill_path_;
  std::string head_;
  std::string tail_;  // its last tail_max_ bytes count; cut when it has grown to twice that
  UniqueFd spill_;
  uint64_t bytes_ = 0;
};

}  // namespace norma
