#include "lib/io/http_head.h"

#include <algorithm>

#include "lib/base/text.h"

namespace norma {
namespace {

constexpr int kFirstFinalStatus = 200;

// "HTTP/1.1 200 OK" -> 200; 0 for nonsense.
int StatusOf(std::string_view line) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return 0;
  int status = 0;
  for (const char c : line.substr(blank + 1, 3)) {
    if (c < '0' || c > '9') return 0;
    status = status * 10 + (c - '0');
  }
  return status;
}

}  // namespace

HeadReader::Step HeadReader::Feed(std::string_view line) {
  bytes_ += line.size();
  if (bytes_ > kBytesMax) return Step::kTooLarge;
  if (done_) return Step::kMore;  // trailers
  const std::string_view content = Trim(line);
  if (content.empty()) {
    done_ = head_.status >= kFirstFinalStatus;  // else 1xx: the answer is still to come
    return done_ ? Step::kHead : Step::kMore;
  }
  if (content.substr(0, 5) == "HTTP/") {
    head_.status = StatusOf(content);
    head_.headers.clear();
  } else {
    AddHeader(line);
  }
  return Step::kMore;
}

void HeadReader::AddHeader(std::string_view line) {
  HttpHeaders& headers = head_.headers;
  if ((line.front() == ' ' || line.front() == '\t') && !headers.empty()) {
    headers.back().second += " " + std::string(Trim(line));  // obsolete folding
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  headers.emplace_back(ToLower(Trim(line.substr(0, colon))),
                       std::string(Trim(line.substr(colon + 1))));
}

bool IsHeaderName(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool IsHeaderValue(std::string_view value) {
  return std::ranges::all_of(value, [](char c) {
    return (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) || c == '\t';
  });
}

}  // namespace norma
