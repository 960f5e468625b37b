// See grep_files.h.
#include "lib/tool/grep_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "lib/tool/tool_path.h"

namespace norma::tool {
namespace {

constexpr size_t kThreadsMax = 4;
constexpr size_t kFilesPerThread = 64;  // fewer are not worth a thread
constexpr size_t kFirstReadBytes = 64 * 1024;

// Reads the whole file into `buffer` (kept by the caller from file to file). kPending means: it is
// there. Plain reads, no mmap: a file cut short meanwhile would kill the process with SIGBUS.
ScanState Load(const GrepSearch& search, const GrepFile& file, std::string* buffer, size_t* size) {
  const auto fd = search.env.roots->OpenRegular(search.PlaceOf(file));
  struct stat info {};
  if (!fd.ok() || fstat(fd.value().get(), &info) != 0) return ScanState::kUnreadable;
  if (static_cast<uint64_t>(info.st_size) > kGrepFileBytesMax) return ScanState::kTooLarge;
  *size = 0;
  bool probed = false;
  for (;;) {
    if (buffer->size() < *size + kFirstReadBytes) {
      const size_t rest = static_cast<size_t>(info.st_size) + 1;
      buffer->resize(std::max({rest, *size + kFirstReadBytes, buffer->size()}));
    }
    // The start alone first: of a large binary file no more is read.
    const size_t room = probed ? buffer->size() - *size : kFirstReadBytes;
    const ssize_t got = read(fd.value().get(), buffer->data() + *size, room);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ScanState::kUnreadable;
    *size += static_cast<size_t>(got);
    if (*size > kGrepFileBytesMax) return ScanState::kTooLarge;
    if (!probed && (got == 0 || *size >= kGrepProbeBytes)) {
      probed = true;
      const size_t probe = std::min(*size, kGrepProbeBytes);
      if (memchr(buffer->data(), '\0', probe) != nullptr) return ScanState::kBinary;
    }
    if (got == 0) return ScanState::kPending;
  }
}

void ScanOne(const GrepSearch& search, GrepFile* file, std::string* buffer) {
  size_t size = 0;
  const ScanState loaded = Load(search, *file, buffer, &size);
  if (loaded != ScanState::kPending) {
    file->state = loaded;
    return;
  }
  const std::string_view text(buffer->data(), size);
  bool stopped = false;
  uint64_t matches = 0;
  ContentEmitter emitter(file->below, text, search.style, nullptr, 0);
  search.matcher.Scan(
      text,
      [&](const Span& line) {
        ++matches;
        if (search.mode == GrepMode::kContent) emitter.Match(line);
        return search.mode != GrepMode::kFiles;  // one is enough there
      },
      [&] { return stopped = search.Stopped(); });
  if (stopped) return;  // half a file is no result: it counts as not searched
  emitter.Finish();
  file->state = matches > 0 ? ScanState::kMatched : ScanState::kClean;
  file->matches = matches;
  file->output_lines = search.mode == GrepMode::kContent ? emitter.count() : (matches > 0 ? 1 : 0);
}

}  // namespace

Place GrepSearch::PlaceOf(const GrepFile& file) const {
  return top.kind == FileKind::kDirectory ? PlaceBelow(top, file.below) : top;
}

Result<GrepList> ListGrepFiles(const GrepSearch& search, const GrepFilter& filter,
                               const WalkOptions& options, bool sizes) {
  GrepList list;
  if (search.top.kind == FileKind::kRegular) {
    const std::string& real = search.top.real;
    list.files.push_back({real.substr(real.rfind('/') + 1)});
    return list;
  }
  NORMA_ASSIGN(list.walk, Walk(*search.env.roots, search.top, options, *search.env.clock,
                               search.cancel, [&](const WalkEntry& entry) {
                                 if (entry.kind != FileKind::kRegular || !filter.Takes(entry.below))
                                   return;
                                 GrepFile file{std::string(entry.below)};
                                 struct stat info {};
                                 if (sizes && Stat(entry, &info) &&
                                     static_cast<uint64_t>(info.st_size) > kGrepFileBytesMax) {
                                   file.state = ScanState::kTooLarge;
                                 }
                                 list.files.push_back(std::move(file));
                               }));
  std::sort(list.files.begin(), list.files.end(),
            [](const GrepFile& a, const GrepFile& b) { return a.below < b.below; });
  return list;
}

void ScanGrepFiles(const GrepSearch& search, std::vector<GrepFile>* files) {
  std::vector<GrepFile*> pending;
  for (GrepFile& file : *files) {
    if (file.state == ScanState::kPending) pending.push_back(&file);
  }
  // Handed out in order; each file is touched by one thread only.
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;  // guards failure
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      std::string buffer;
      while (!failed.load(std::memory_order_relaxed) && !search.Stopped()) {
        const size_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= pending.size()) return;
        ScanOne(search, pending[i], &buffer);
      }
    } catch (...) {
      // To the thread of the call, which knows what an exception means there.
      std::lock_guard lock(mutex);
      failure = std::current_exception();
      failed.store(true);
    }
  };
  const size_t wanted = std::min({kThreadsMax, pending.size() / kFilesPerThread + 1,
                                  size_t{std::max(1u, std::thread::hardware_concurrency())}});
  {
    std::vector<std::jthread> helpers;
    for (size_t i = 1; i < wanted; ++i) helpers.emplace_back(work);
    work();
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

bool ShowGrepFile(const GrepSearch& search, const GrepFile& file, uint64_t first, Page* page) {
  std::string buffer;
  size_t size = 0;
  if (search.Stopped()) return false;
  if (Load(search, file, &buffer, &size) != ScanState::kPending) return true;
  const std::string_view text(buffer.data(), size);
  bool stopped = false;
  ContentEmitter emitter(file.below, text, search.style, page, first);
  search.matcher.Scan(
      text,
      [&](const Span& line) {
        emitter.Match(line);
        // Behind the page nothing is left to show.
        return page->Reaches(first + emitter.count(), 1) ||
               first + emitter.count() < page->offset();
      },
      [&] { return stopped = search.Stopped(); });
  if (!stopped) emitter.Finish();
  return !stopped;
}

}  // namespace norma::tool
