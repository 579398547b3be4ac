;;; drive_acp.el --- Drives an ACP agent with acp.el  -*- lexical-binding: t; -*-

;; emacs --batch -L FOLDER-OF-ACP-EL -l drive_acp.el WORKSPACE PROGRAM ARGUMENT...
;; A prompt, an edit that is allowed, a load by a second client, and a fork, which goes on by itself; prints one JSON
;; object of what came.

;;; Code:

(require 'acp)
(require 'json)
(require 'seq)

(defvar drive-updates nil "Updates of the session, newest first.")
(defvar drive-questions nil "Questions, newest first.")

(defun drive-client (program arguments)
  "Return a client of PROGRAM with ARGUMENTS that is initialized."
  (let ((client (acp-make-client :command program :command-params arguments)))
    (acp-subscribe-to-notifications
     :client client
     :on-notification (lambda (notification)
                        (push (map-nested-elt notification '(params update)) drive-updates)))
    (acp-subscribe-to-requests
     :client client
     :on-request
     (lambda (request)
       (push (map-elt request 'params) drive-questions)
       (let ((allow (seq-find (lambda (option) (equal (map-elt option 'kind) "allow_once"))
                              (map-nested-elt request '(params options)))))
         (acp-send-response
          :client client
          :response (acp-make-session-request-permission-response
                     :request-id (map-elt request 'id) :option-id (map-elt allow 'optionId))))))
    (drive-ask client (acp-make-initialize-request :protocol-version 1))
    client))

(defun drive-ask (client request)
  "Send a REQUEST by CLIENT, and return the result."
  (acp-send-request :client client :request request :sync t))

(defun drive-prompt (client session words)
  "Send a prompt of WORDS in a SESSION by CLIENT, and return why its turn ended."
  (map-elt (drive-ask client (acp-make-session-prompt-request
                              :session-id session :prompt `[((type . "text") (text . ,words))]))
           'stopReason))

(let* ((workspace (pop command-line-args-left))
       (program (pop command-line-args-left))
       (arguments command-line-args-left)
       (default-directory (file-name-as-directory workspace))
       (first (drive-client program arguments))
       (session (map-elt (drive-ask first (acp-make-session-new-request :cwd workspace)) 'sessionId))
       (stops (list (drive-prompt first session "say hello") (drive-prompt first session "write new.txt")))
       (updates (reverse drive-updates))
       (questions (reverse drive-questions))
       (second (drive-client program arguments))
       replayed fork forked)
  (setq command-line-args-left nil drive-updates nil)
  (drive-ask second (acp-make-session-load-request :session-id session :cwd workspace))
  (setq replayed (vconcat (reverse drive-updates)) drive-updates nil)
  (setq fork (map-elt (drive-ask second (acp-make-session-fork-request :session-id session :cwd workspace)) 'sessionId)
        forked (drive-prompt second fork "say hello"))
  (princ (json-encode `((stops . ,(vconcat stops))
                        (updates . ,(vconcat updates))
                        (questions . ,(vconcat questions))
                        (replayed . ,replayed)
                        (session . ,session)
                        (fork . ,fork)
                        (forked . ,forked))))
  (acp-shutdown :client first)
  (acp-shutdown :client second))

;;; drive_acp.el ends here
