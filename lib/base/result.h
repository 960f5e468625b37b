// The only error channel of the house: Result<T> holds a value or an Error, and neither can be
// dropped silently. Knows nothing of logging or printing: who shows an error decides how.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace norma {

// Closed list. The code says who must act; the message says what happened, where, and what to do.
enum class Code {
  kUsage,        // a bad flag, prompt or file named on the command line
  kSpec,         // a fault of the run spec
  kIo,           // the file system or a child process refused
  kNotFound,     // the named file or thing does not exist
  kDenied,       // a confinement rule refused (path outside the roots)
  kInvalid,      // input that does not parse or does not fit its schema
  kCancelled,    // the run was cancelled (signal, deadline)
  kTimeout,      // a time limit of this one operation passed
  kNetwork,      // no answer, or a connection that broke
  kModel,        // the provider answered with an error or with nonsense
  kContextFull,  // the provider says that the prompt is too long
  kReplayMiss,   // a replay has no recording for a request
  kBudget,       // a budget does not allow it
  kLedger,       // the ledger cannot be written
  kInternal,     // a bug of ours
};

struct [[nodiscard]] Error {
  Code code = Code::kInternal;
  std::string message;

  friend bool operator==(const Error&, const Error&) = default;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  const T& value() const& { return std::get<0>(state_); }
  T& value() & { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

// Result of an operation that returns nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: by design

  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

// Thrown by NORMA_CHECK only; caught at the top of a run, which then ends as `internal`.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void ThrowInternal(const char* condition, const char* file, int line) {
  throw InternalError(std::string("invariant broken: ") + condition + " at " + file + ":" +
                      std::to_string(line));
}

}  // namespace norma

// Our own invariants, kept on in every build. Never for outside input.
#define NORMA_CHECK(condition) \
  ((condition) ? void(0) : ::norma::ThrowInternal(#condition, __FILE__, __LINE__))

#define NORMA_CONCAT_INNER(a, b) a##b
#define NORMA_CONCAT(a, b) NORMA_CONCAT_INNER(a, b)

// Passes an error up: NORMA_TRY(Sync());
#define NORMA_TRY(expression)                                   \
  do {                                                          \
    if (auto norma_status = (expression); !norma_status.ok()) { \
      return norma_status.error();                              \
    }                                                           \
  } while (false)

// Takes the value or passes the error up: NORMA_ASSIGN(const auto text, ReadFile(path));
#define NORMA_ASSIGN(declaration, expression) \
  NORMA_ASSIGN_INNER(NORMA_CONCAT(norma_result_, __LINE__), declaration, expression)
#define NORMA_ASSIGN_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                               \
  if (!temporary.ok()) return temporary.error();               \
  declaration = std::move(temporary).value()
